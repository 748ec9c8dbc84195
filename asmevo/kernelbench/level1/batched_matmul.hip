// c[i] = a[i] b[i], rows x depth times depth x columns, a tile of 32 x 32 a workgroup.
#include "tile.hpp"

using Product = Tile<32, 32, 32>;

GLOBAL THREADS(256) void batched_matmul(float *__restrict__ c, const float *__restrict__ a,
                                        const float *__restrict__ b, int rows, int columns,
                                        int depth) {
  SHARED static Product::Storage lds;
  const int row = block_y() * 32, column = block_x() * 32;
  Product tile;
  tile.clear();
  tile.multiply<Order::K_OF_ROWS>(a + block_z() * rows * depth, b + block_z() * depth * columns,
                                  lds, row, column, rows, columns, depth, columns, 0, depth);
  tile.store(c + block_z() * rows * columns, row, column, rows, columns,
             [] __attribute__((device)) (float sum, int, int) { return sum; });
}
