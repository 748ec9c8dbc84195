// out = softmax over features of gelu(x w^T + bias), at most 128 features: a workgroup takes 16 whole
// rows.
#include "tile.hpp"

constexpr int FEATURES = 128;
using Product = Tile<16, FEATURES, 32>;

GLOBAL THREADS(256) void matmul_gelu_softmax(float *__restrict__ out, const float *__restrict__ x,
                                             const float *__restrict__ w,
                                             const float *__restrict__ bias, int rows,
                                             int columns, int depth) {
  SHARED static Product::Storage lds;
  const int row = block_x() * 16;
  Product tile;
  tile.linear(x, w, lds, row, 0, rows, columns, depth);
  tile.apply(0, [=] __attribute__((device)) (float sum, int c) {
    return c < columns ? gelu(sum + bias[c]) : Maximum::IDENTITY;
  });
  auto &values = tile.sums[0];
  const float largest = tile.row_reduce<Maximum>(values);
  UNROLL for (int j = 0; j < Product::COLUMN_ITEMS; j++)
    values[j] = exponential(values[j] - largest);
  const float scale = 1.0f / tile.row_reduce<Sum>(values);
  tile.store(out, row, 0, rows, columns,
             [=] __attribute__((device)) (float value, int, int) { return value * scale; });
}
