// Reductions of one value of each thread over a wave and over a workgroup.
#pragma once
#include "math.hpp"

struct Sum {
  static constexpr float IDENTITY = 0.0f;
  DEVICE float of(float a, float b) { return a + b; }
};
struct Maximum {
  static constexpr float IDENTITY = -__builtin_inff();
  DEVICE float of(float a, float b) { return maximum(a, b); }
};

template <class Op>
DEVICE float wave_reduce(float x) {
  UNROLL for (int mask = WAVE / 2; mask > 0; mask >>= 1) x = Op::of(x, shuffle_xor(x, mask));
  return x;
}

// Every thread gets the result. `partial` has one element for each wave and may be used again
// after the next barrier.
template <class Op, int threads>
DEVICE float block_reduce(float x, float *partial) {
  constexpr int waves = threads / WAVE;
  x = wave_reduce<Op>(x);
  barrier();
  if (thread() % WAVE == 0) partial[thread() / WAVE] = x;
  barrier();
  float total = Op::IDENTITY;
  UNROLL for (int i = 0; i < waves; i++) total = Op::of(total, partial[i]);
  return total;
}
