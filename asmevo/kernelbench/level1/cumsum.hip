// Cumulative sum of each row, a workgroup a row, which goes through it 256 columns at a time.
#include "reduce.hpp"

constexpr int COLUMNS = 256, WAVES = COLUMNS / WAVE;

DEVICE float wave_scan(float x) {
  const int lane = thread() % WAVE;
  UNROLL for (int distance = 1; distance < WAVE; distance *= 2) {
    float before = shuffle_up(x, distance);
    x += lane >= distance ? before : 0.0f;
  }
  return x;
}

GLOBAL THREADS(COLUMNS) void cumsum(float *__restrict__ out, const float *__restrict__ in,
                                    int columns) {
  SHARED static float totals[2][WAVES];
  const float *row = in + block_x() * columns;
  float *result = out + block_x() * columns;
  const int wave = thread() / WAVE;
  float carry = 0.0f;
  int which = 0;  // of two buffers, so that one barrier a round is enough
  for (int start = 0; start < columns; start += COLUMNS) {
    const int i = start + thread();
    float scanned = wave_scan(i < columns ? row[i] : 0.0f);
    if (thread() % WAVE == WAVE - 1) totals[which][wave] = scanned;
    barrier();
    float before = carry;
    UNROLL for (int j = 0; j < WAVES; j++) {
      float total = totals[which][j];
      before += j < wave ? total : 0.0f;
      carry += total;
    }
    if (i < columns) result[i] = before + scanned;
    which ^= 1;
  }
}
