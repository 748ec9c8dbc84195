// out = mish(mish(conv(x, w) + bias)); a thread has four channels of a position.
#include "conv.hpp"

constexpr int OUTPUTS = 4;

GLOBAL THREADS(256) void conv2d_mish(float *__restrict__ out, const float *__restrict__ in,
                                     const float *__restrict__ weight,
                                     const float *__restrict__ bias, int channels, int outputs,
                                     int height, int width) {
  const int out_height = height - 2, out_width = width - 2;
  const int groups = outputs / OUTPUTS;
  const int image = block_z() / groups, first = block_z() % groups * OUTPUTS;
  const int column = block_x() * 32 + thread() % 32, row = block_y() * 8 + thread() / 32;
  if (row >= out_height || column >= out_width) return;
  float sums[OUTPUTS];
  convolve_at(sums, in + image * channels * height * width, weight + first * channels * TAPS,
              channels, height, width, row, column);
  float *result = out + (image * outputs + first) * out_height * out_width;
  UNROLL for (int o = 0; o < OUTPUTS; o++)
    result[(o * out_height + row) * out_width + column] = mish(mish(sums[o] + bias[first + o]));
}
