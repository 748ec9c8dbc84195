// RMS norm over the features of [batch, features, positions]: a thread a position.
//   out = x / sqrt(mean over features of x^2 + epsilon)
#include "math.hpp"

GLOBAL THREADS(256) void rms_norm(float *__restrict__ out, const float *__restrict__ in,
                                  int features, int positions, float epsilon) {
  const int position = block_x() * 256 + thread();
  if (position >= positions) return;
  const int first = block_y() * features * positions + position;

  float squares = 0.0f;
  for (int i = 0; i < features; i++) {
    float x = in[first + i * positions];
    squares += x * x;
  }
  const float scale = 1.0f / square_root(squares / (float)features + epsilon);
  for (int i = 0; i < features; i++)
    out[first + i * positions] = in[first + i * positions] * scale;
}
