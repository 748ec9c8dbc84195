// out = scale * sum of the maxima of pairs of features of x w^T + bias: a workgroup a row, an even
// number of features, at most 512, and a depth of at most 1024.
#include "row.hpp"

constexpr int THREADS_A_ROW = 512;

GLOBAL THREADS(THREADS_A_ROW) void matmul_maxpool_sum_scale(
    float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ w,
    const float *__restrict__ bias, int columns, int depth, float scale) {
  SHARED static float row[1024], features[512], partial[THREADS_A_ROW / WAVE];
  linear_row<THREADS_A_ROW>(features, row, x + block_x() * depth, w, bias, columns, depth);
  float sum = 0.0f;
  for (int n = thread(); n < columns / 2; n += THREADS_A_ROW)
    sum += maximum(features[2 * n], features[2 * n + 1]);
  sum = block_reduce<Sum, THREADS_A_ROW>(sum, partial);
  if (thread() == 0) out[block_x()] = sum * scale;
}
