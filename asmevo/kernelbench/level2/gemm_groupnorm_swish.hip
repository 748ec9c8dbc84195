// y = group_norm(x w^T + bias) with groups of 32 features, out = swish(swish(y) * factor[feature]):
// a workgroup takes 32 rows of one group. The moments of a row come from sum and sum of squares.
#include "tile.hpp"

constexpr int GROUP = 32;
using Product = Tile<32, GROUP, 32>;

GLOBAL THREADS(256) void gemm_groupnorm_swish(
    float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ w,
    const float *__restrict__ bias, const float *__restrict__ gamma,
    const float *__restrict__ beta, const float *__restrict__ factor, int rows, int columns,
    int depth, float epsilon) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 32, column = block_x() * GROUP;
  Product tile;
  tile.linear(x, w, lds, row, column, rows, columns, depth);
  tile.apply(column, [=] __attribute__((device)) (float sum, int c) { return sum + bias[c]; });
  UNROLL for (int i = 0; i < Product::ROW_ITEMS; i++) {
    auto &values = tile.sums[i];
    float squares[Product::COLUMN_ITEMS];
    UNROLL for (int j = 0; j < Product::COLUMN_ITEMS; j++) squares[j] = values[j] * values[j];
    const float mean = tile.row_reduce<Sum>(values) / (float)GROUP;
    const float second = tile.row_reduce<Sum>(squares) / (float)GROUP;
    const float scale = 1.0f / square_root(second - mean * mean + epsilon);
    UNROLL for (int j = 0; j < Product::COLUMN_ITEMS; j++) values[j] = (values[j] - mean) * scale;
  }
  tile.store(out, row, column, rows, columns,
             [=] __attribute__((device)) (float value, int, int c) {
               return swish(swish(value * gamma[c] + beta[c]) * factor[c]);
             });
}
