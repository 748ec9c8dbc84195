// Maximum of each row, a wave a row and eight rows a workgroup.
#include "reduce.hpp"

constexpr int ROWS = 8;

GLOBAL THREADS(ROWS * WAVE) void max_reduction(float *__restrict__ out,
                                               const float *__restrict__ in, int rows,
                                               int columns) {
  const int row = block_x() * ROWS + thread() / WAVE;
  if (row >= rows) return;
  const float *first = in + row * columns;
  float largest = Maximum::IDENTITY;
  for (int i = thread() % WAVE; i < columns; i += WAVE) largest = maximum(largest, first[i]);
  largest = wave_reduce<Maximum>(largest);
  if (thread() % WAVE == 0) out[row] = largest;
}
