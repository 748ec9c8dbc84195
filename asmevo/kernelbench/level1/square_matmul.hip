// c = a b for square matrices in row order, a tile of 64 x 64 a workgroup.
#include "tile.hpp"

using Product = Tile<64, 64, 16>;

GLOBAL THREADS(256) void square_matmul(float *__restrict__ c, const float *__restrict__ a,
                                       const float *__restrict__ b, int n) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 64, column = block_x() * 64;
  Product tile;
  tile.clear();
  tile.multiply<Order::K_OF_ROWS>(a, b, lds, row, column, n, n, n, n, 0, n);
  tile.store(c, row, column, n, n,
             [] __attribute__((device)) (float sum, int, int) { return sum; });
}
