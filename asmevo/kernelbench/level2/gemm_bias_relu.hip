// out = relu(x w^T + bias) with factors and results in bf16, sums and bias in f32
#include "tile.hpp"

using Product = Tile<64, 64, 32>;

GLOBAL THREADS(256) void gemm_bias_relu(unsigned short *__restrict__ out,
                                        const unsigned short *__restrict__ x,
                                        const unsigned short *__restrict__ w,
                                        const float *__restrict__ bias, int rows, int columns,
                                        int depth) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 64, column = block_x() * 64;
  Product tile;
  tile.linear(x, w, lds, row, column, rows, columns, depth);
  tile.store(out, row, column, rows, columns, [=] __attribute__((device)) (float sum, int, int c) {
    return to_bf16(relu(sum + bias[c]));
  });
}
