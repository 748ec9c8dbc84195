// c = a b for a tall a, rows x DEPTH, and a wide b, DEPTH x columns; columns a multiple of four.
// A wave takes four columns a lane and `span` rows: b stays in registers, a row of a is the same
// for the whole wave.
#include "device.hpp"

constexpr int DEPTH = 16;

GLOBAL THREADS(256) void tall_matmul(float *__restrict__ c, const float *__restrict__ a,
                                     const float *__restrict__ b, int rows, int columns,
                                     int span) {
  const int wave = __builtin_amdgcn_readfirstlane(thread() / WAVE);
  const int column = (block_x() * WAVE + thread() % WAVE) * 4;
  if (column >= columns) return;
  float4 right[DEPTH];
  UNROLL for (int k = 0; k < DEPTH; k++) right[k] = *(const float4 *)(b + k * columns + column);
  const int first = (block_y() * 4 + wave) * span;
  const int stop = least(rows, first + span);
  for (int row = first; row < stop; row++) {
    float4 sum = {};
    UNROLL for (int k = 0; k < DEPTH; k++) sum += a[row * DEPTH + k] * right[k];
    *(float4 *)(c + row * columns + column) = sum;
  }
}
