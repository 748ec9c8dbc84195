// c = a b for upper triangular matrices of n rows, a tile of 64 x 64 a workgroup. Tiles below the
// diagonal are zero; those above need only the k between their first row and their last column.
#include "tile.hpp"

using Product = Tile<64, 64, 16>;

GLOBAL THREADS(256) void triu_matmul(float *__restrict__ c, const float *__restrict__ a,
                                     const float *__restrict__ b, int n) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 64, column = block_x() * 64;
  Product tile;
  tile.clear();
  if (row <= column)
    tile.multiply<Order::K_OF_ROWS>(a, b, lds, row, column, n, n, n, n, row,
                                    least(n, column + 64));
  tile.store(c, row, column, n, n, [] __attribute__((device)) (float sum, int r, int k) {
    return r <= k ? sum : 0.0f;
  });
}
