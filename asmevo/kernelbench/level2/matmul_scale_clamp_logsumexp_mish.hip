// y = clamp(2 * scale * (x w^T + bias), low, high), s = logsumexp over features of y,
// out = s * mish(s): a workgroup a row, at most 512 features and a depth of at most 1024.
#include "row.hpp"

constexpr int THREADS_A_ROW = 256;

GLOBAL THREADS(THREADS_A_ROW) void matmul_scale_clamp_logsumexp_mish(
    float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ w,
    const float *__restrict__ bias, int columns, int depth, float scale, float low, float high) {
  SHARED static float row[1024], features[512], partial[THREADS_A_ROW / WAVE];
  linear_row<THREADS_A_ROW>(features, row, x + block_x() * depth, w, bias, columns, depth);

  float largest = Maximum::IDENTITY;
  for (int n = thread(); n < columns; n += THREADS_A_ROW) {
    float y = features[n] * scale;
    y = clamp(y + y, low, high);
    features[n] = y;
    largest = maximum(largest, y);
  }
  largest = block_reduce<Maximum, THREADS_A_ROW>(largest, partial);
  float sum = 0.0f;
  for (int n = thread(); n < columns; n += THREADS_A_ROW)
    sum += exponential(features[n] - largest);
  sum = block_reduce<Sum, THREADS_A_ROW>(sum, partial);
  const float s = largest + logarithm(sum);
  if (thread() == 0) out[block_x()] = s * mish(s);
}
