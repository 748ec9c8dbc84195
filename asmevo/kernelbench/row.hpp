// A linear layer for one row, by one workgroup: a wave takes a feature at a time.
#pragma once
#include "reduce.hpp"

// features[n] = x[.] w[n, .] + bias[n] for n < columns. The row is kept in LDS; ends with a barrier.
template <int threads>
DEVICE void linear_row(float *features, float *row, const float *__restrict__ x,
                       const float *__restrict__ w, const float *__restrict__ bias, int columns,
                       int depth) {
  const int lane = thread() % WAVE;
  for (int k = thread(); k < depth; k += threads) row[k] = x[k];
  barrier();
  for (int n = thread() / WAVE; n < columns; n += threads / WAVE) {
    const float *weights = w + n * depth;
    float sum = 0.0f;
    for (int k = lane; k < depth; k += WAVE) sum += row[k] * weights[k];
    sum = wave_reduce<Sum>(sum);
    if (lane == 0) features[n] = sum + bias[n];
  }
  barrier();
}
