// Softmax over rows, a workgroup a row: maximum, sum of exponentials, quotient.
#include "reduce.hpp"

constexpr int THREADS_A_ROW = 512;

GLOBAL THREADS(THREADS_A_ROW) void softmax(float *__restrict__ out, const float *__restrict__ in,
                                           int columns) {
  SHARED static float partial[THREADS_A_ROW / WAVE];
  const float *row = in + (long)block_x() * columns;
  float *result = out + (long)block_x() * columns;

  float largest = Maximum::IDENTITY;
  for (int i = thread(); i < columns; i += THREADS_A_ROW) largest = maximum(largest, row[i]);
  largest = block_reduce<Maximum, THREADS_A_ROW>(largest, partial);

  float sum = 0.0f;
  for (int i = thread(); i < columns; i += THREADS_A_ROW) sum += exponential(row[i] - largest);
  sum = block_reduce<Sum, THREADS_A_ROW>(sum, partial);

  const float scale = 1.0f / sum;
  for (int i = thread(); i < columns; i += THREADS_A_ROW)
    result[i] = exponential(row[i] - largest) * scale;
}
