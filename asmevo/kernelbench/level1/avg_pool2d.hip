// Mean over windows of side x side, stride side, of [planes, height, width]: a thread a window.
#include "device.hpp"

GLOBAL THREADS(256) void avg_pool2d(float *__restrict__ out, const float *__restrict__ in,
                                    int height, int width, int side) {
  const int out_height = height / side, out_width = width / side;
  const int x = block_x() * 32 + thread() % 32, y = block_y() * 8 + thread() / 32;
  if (x >= out_width || y >= out_height) return;
  const float *window = in + (block_z() * height + y * side) * width + x * side;
  float sum = 0.0f;
  for (int i = 0; i < side; i++)
    for (int j = 0; j < side; j++) sum += window[i * width + j];
  out[(block_z() * out_height + y) * out_width + x] = sum / (float)(side * side);
}
