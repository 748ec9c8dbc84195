// out = tanh(tanh(minimum over the 16 channels of conv(x, w) + bias)), a thread a position
#include "conv.hpp"

constexpr int OUTPUTS = 16;

GLOBAL THREADS(256) void conv2d_min_tanh(float *__restrict__ out, const float *__restrict__ in,
                                         const float *__restrict__ weight,
                                         const float *__restrict__ bias, int channels, int height,
                                         int width) {
  const int out_height = height - 2, out_width = width - 2;
  const int column = block_x() * 32 + thread() % 32, row = block_y() * 8 + thread() / 32;
  if (row >= out_height || column >= out_width) return;
  float sums[OUTPUTS];
  convolve_at(sums, in + block_z() * channels * height * width, weight, channels, height, width,
              row, column);
  float smallest = sums[0] + bias[0];
  UNROLL for (int o = 1; o < OUTPUTS; o++) smallest = minimum(smallest, sums[o] + bias[o]);
  out[(block_z() * out_height + row) * out_width + column] = tanh(tanh(smallest));
}
