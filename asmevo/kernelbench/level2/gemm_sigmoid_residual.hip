// y = x w^T + bias, out = sigmoid(y) * scale + y, with factors in f16 and sums in f32
#include "tile.hpp"

using Product = Tile<64, 64, 16>;

GLOBAL THREADS(256) void gemm_sigmoid_residual(float *__restrict__ out,
                                               const _Float16 *__restrict__ x,
                                               const _Float16 *__restrict__ w,
                                               const float *__restrict__ bias, int rows,
                                               int columns, int depth, float scale) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 64, column = block_x() * 64;
  Product tile;
  tile.linear(x, w, lds, row, column, rows, columns, depth);
  tile.store(out, row, column, rows, columns, [=] __attribute__((device)) (float sum, int, int c) {
    const float y = sum + bias[c];
    return sigmoid(y) * scale + y;
  });
}
