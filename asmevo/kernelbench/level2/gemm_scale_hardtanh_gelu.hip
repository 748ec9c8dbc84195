// out = gelu(clamp((x w^T + bias) * scale, low, high))
#include "tile.hpp"

using Product = Tile<64, 64, 16>;

GLOBAL THREADS(256) void gemm_scale_hardtanh_gelu(float *__restrict__ out,
                                                  const float *__restrict__ x,
                                                  const float *__restrict__ w,
                                                  const float *__restrict__ bias, int rows,
                                                  int columns, int depth, float scale, float low,
                                                  float high) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 64, column = block_x() * 64;
  Product tile;
  tile.linear(x, w, lds, row, column, rows, columns, depth);
  tile.store(out, row, column, rows, columns, [=] __attribute__((device)) (float sum, int, int c) {
    return gelu(clamp((sum + bias[c]) * scale, low, high));
  });
}
