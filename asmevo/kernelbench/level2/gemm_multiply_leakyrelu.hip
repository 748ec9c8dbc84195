// out = leaky_relu((x w^T + bias) * factor)
#include "tile.hpp"

using Product = Tile<32, 64, 16>;

GLOBAL THREADS(256) void gemm_multiply_leakyrelu(float *__restrict__ out,
                                                 const float *__restrict__ x,
                                                 const float *__restrict__ w,
                                                 const float *__restrict__ bias, int rows,
                                                 int columns, int depth, float factor,
                                                 float slope) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 32, column = block_x() * 64;
  Product tile;
  tile.linear(x, w, lds, row, column, rows, columns, depth);
  tile.store(out, row, column, rows, columns, [=] __attribute__((device)) (float sum, int, int c) {
    return leaky_relu((sum + bias[c]) * factor, slope);
  });
}
