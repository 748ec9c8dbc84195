// out = group_norm(swish(x w^T) + bias) with groups of 64 features: a workgroup takes 64 rows of one
// group.
#include "tile.hpp"

constexpr int GROUP = 64;
using Product = Tile<64, GROUP, 16>;

GLOBAL THREADS(256) void matmul_swish_sum_groupnorm(
    float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ w,
    const float *__restrict__ bias, const float *__restrict__ gamma,
    const float *__restrict__ beta, int rows, int columns, int depth, float epsilon) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 64, column = block_x() * GROUP;
  Product tile;
  tile.linear(x, w, lds, row, column, rows, columns, depth);
  tile.apply(column, [=] __attribute__((device)) (float sum, int c) {
    return swish(sum) + bias[c];
  });
  UNROLL for (int i = 0; i < Product::ROW_ITEMS; i++) {
    auto &values = tile.sums[i];
    const float mean = tile.row_reduce<Sum>(values) / (float)GROUP;
    float squares[Product::COLUMN_ITEMS];
    UNROLL for (int j = 0; j < Product::COLUMN_ITEMS; j++) {
      values[j] -= mean;
      squares[j] = values[j] * values[j];
    }
    const float variance = tile.row_reduce<Sum>(squares) / (float)GROUP;
    const float scale = 1.0f / square_root(variance + epsilon);
    UNROLL for (int j = 0; j < Product::COLUMN_ITEMS; j++) values[j] *= scale;
  }
  tile.store(out, row, column, rows, columns,
             [=] __attribute__((device)) (float value, int, int c) {
               return value * gamma[c] + beta[c];
             });
}
