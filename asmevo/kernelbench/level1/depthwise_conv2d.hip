// Depthwise convolution with a 3 x 3 filter for each channel: in [planes, height, width] with planes
// = images * channels, zero padding. A workgroup takes 64 columns and `rows` rows of a plane.
#include "device.hpp"

constexpr int SIDE = 3;

GLOBAL THREADS(256) void depthwise_conv2d(float *__restrict__ out, const float *__restrict__ in,
                                          const float *__restrict__ weight, int channels,
                                          int height, int width, int padding, int rows) {
  const int out_height = height + 2 * padding - SIDE + 1;
  const int out_width = width + 2 * padding - SIDE + 1;
  const int plane = block_z();
  const float *image = in + plane * height * width;
  const float *filter = weight + plane % channels * SIDE * SIDE;
  float *result = out + plane * out_height * out_width;

  const int x = block_x() * 64 + thread() % 64;
  const int stop = least(out_height, (block_y() + 1) * rows);
  if (x >= out_width) return;
  for (int y = block_y() * rows + thread() / 64; y < stop; y += 4) {
    float sum = 0.0f;
    UNROLL for (int i = 0; i < SIDE; i++) {
      UNROLL for (int j = 0; j < SIDE; j++) {
        int row = y + i - padding, column = x + j - padding;
        if (row >= 0 && row < height && column >= 0 && column < width)
          sum += image[row * width + column] * filter[i * SIDE + j];
      }
    }
    result[y * out_width + x] = sum;
  }
}
