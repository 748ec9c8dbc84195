// out = gelu((x w^T + bias) / divisor)
#include "tile.hpp"

using Product = Tile<64, 32, 16>;

GLOBAL THREADS(256) void matmul_divide_gelu(float *__restrict__ out, const float *__restrict__ x,
                                            const float *__restrict__ w,
                                            const float *__restrict__ bias, int rows, int columns,
                                            int depth, float divisor) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 64, column = block_x() * 32;
  Product tile;
  tile.linear(x, w, lds, row, column, rows, columns, depth);
  tile.store(out, row, column, rows, columns, [=] __attribute__((device)) (float sum, int, int c) {
    return gelu((sum + bias[c]) / divisor);
  });
}
