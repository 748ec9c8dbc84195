// Matrix products through tiles in LDS, in single precision.
#pragma once
#include "math.hpp"

// How a matrix lies in memory: element (row, k) of the left, (k, column) of the right factor.
enum class Order { ROWS_OF_K, K_OF_ROWS };

// A tile of ROWS x COLUMNS results for 256 threads, of which each has ROW_ITEMS x COLUMN_ITEMS.
template <int ROWS, int COLUMNS, int DEPTH>
struct Tile {
  static constexpr int THREADS = 256;
  static constexpr int ROW_ITEMS = ROWS / 16, COLUMN_ITEMS = COLUMNS / 16;
  // Four more than needed, so that columns of a transposed tile are in different banks.
  static constexpr int A_PITCH = ROWS + 4, B_PITCH = COLUMNS + 4;

  struct Storage {
    float a[DEPTH][A_PITCH];
    float b[DEPTH][B_PITCH];
  };

  float sums[ROW_ITEMS][COLUMN_ITEMS];

  // The first row and column of this thread's results within the tile
  DEVICE int row() { return thread() / 16 * ROW_ITEMS; }
  DEVICE int column() { return thread() % 16 * COLUMN_ITEMS; }

  __attribute__((device)) void clear() {
    UNROLL for (int i = 0; i < ROW_ITEMS; i++)
      UNROLL for (int j = 0; j < COLUMN_ITEMS; j++) sums[i][j] = 0.0f;
  }

  // Adds a[first_row + i, k] * b[k, first_column + j] over begin <= k < end. Elements outside of
  // the matrices count as zero.
  template <Order B_ORDER>
  __attribute__((device)) void multiply(const float *__restrict__ a, const float *__restrict__ b,
                                        Storage &lds, int first_row, int first_column, int rows,
                                        int columns, int pitch_a, int pitch_b, int begin,
                                        int end) {
    for (int start = begin; start < end; start += DEPTH) {
      UNROLL for (int i = thread(); i < ROWS * DEPTH; i += THREADS) {
        int r = i / DEPTH, k = i % DEPTH;
        bool inside = first_row + r < rows && start + k < end;
        lds.a[k][r] = inside ? a[(first_row + r) * pitch_a + start + k] : 0.0f;
      }
      UNROLL for (int i = thread(); i < COLUMNS * DEPTH; i += THREADS) {
        int c, k;
        if (B_ORDER == Order::K_OF_ROWS) {
          c = i % COLUMNS, k = i / COLUMNS;
        } else {
          c = i / DEPTH, k = i % DEPTH;
        }
        bool inside = first_column + c < columns && start + k < end;
        int at = B_ORDER == Order::K_OF_ROWS ? (start + k) * pitch_b + first_column + c
                                             : (first_column + c) * pitch_b + start + k;
        lds.b[k][c] = inside ? b[at] : 0.0f;
      }
      barrier();
      UNROLL for (int k = 0; k < DEPTH; k++) {
        float left[ROW_ITEMS], right[COLUMN_ITEMS];
        UNROLL for (int i = 0; i < ROW_ITEMS; i++) left[i] = lds.a[k][row() + i];
        UNROLL for (int j = 0; j < COLUMN_ITEMS; j++) right[j] = lds.b[k][column() + j];
        UNROLL for (int i = 0; i < ROW_ITEMS; i++)
          UNROLL for (int j = 0; j < COLUMN_ITEMS; j++) sums[i][j] += left[i] * right[j];
      }
      barrier();
    }
  }

  // out[row, column] = of(sum, row, column) for the results inside of the matrix
  template <class Function>
  __attribute__((device)) void store(float *__restrict__ out, int first_row, int first_column,
                                     int rows, int columns, Function of) {
    UNROLL for (int i = 0; i < ROW_ITEMS; i++) {
      int r = first_row + row() + i;
      UNROLL for (int j = 0; j < COLUMN_ITEMS; j++) {
        int c = first_column + column() + j;
        if (r < rows && c < columns) out[r * columns + c] = of(sums[i][j], r, c);
      }
    }
  }
};
