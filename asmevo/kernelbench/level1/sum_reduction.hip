// Sum of [batch, rows, columns] over the rows, a thread a column.
#include "device.hpp"

GLOBAL THREADS(256) void sum_reduction(float *__restrict__ out, const float *__restrict__ in,
                                       int rows, int columns) {
  const int column = block_x() * 256 + thread();
  if (column >= columns) return;
  const float *first = in + block_y() * rows * columns + column;
  float sum = 0.0f;
  for (int i = 0; i < rows; i++) sum += first[i * columns];
  out[block_y() * columns + column] = sum;
}
