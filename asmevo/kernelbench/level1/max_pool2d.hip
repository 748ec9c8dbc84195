// Maximum over windows of 4 x 4, stride 1, of [planes, height, width] padded with -infinity.
// A workgroup takes 64 columns and `rows` rows of a plane.
#include "reduce.hpp"

constexpr int SIDE = 4;

GLOBAL THREADS(256) void max_pool2d(float *__restrict__ out, const float *__restrict__ in,
                                    int height, int width, int padding, int rows) {
  const int out_height = height + 2 * padding - SIDE + 1;
  const int out_width = width + 2 * padding - SIDE + 1;
  const float *image = in + block_z() * height * width;
  float *result = out + block_z() * out_height * out_width;
  const int x = block_x() * 64 + thread() % 64;
  const int stop = least(out_height, (block_y() + 1) * rows);
  if (x >= out_width) return;
  for (int y = block_y() * rows + thread() / 64; y < stop; y += 4) {
    float largest = Maximum::IDENTITY;
    UNROLL for (int i = 0; i < SIDE; i++) {
      UNROLL for (int j = 0; j < SIDE; j++) {
        int row = y + i - padding, column = x + j - padding;
        if (row >= 0 && row < height && column >= 0 && column < width)
          largest = maximum(largest, image[row * width + column]);
      }
    }
    result[y * out_width + x] = largest;
  }
}
