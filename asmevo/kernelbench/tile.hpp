// Matrix products through tiles in LDS, in single precision.
#pragma once
#include "reduce.hpp"

DEVICE float widened(float x) { return x; }
DEVICE float widened(unsigned short x) { return from_bf16(x); }
DEVICE float widened(_Float16 x) { return (float)x; }

// How a matrix lies in memory: element (row, k) of the left, (k, column) of the right factor.
enum class Order { ROWS_OF_K, K_OF_ROWS };

// A tile of ROWS x COLUMNS results for 256 threads, of which each has ROW_ITEMS x COLUMN_ITEMS.
template <int ROWS, int COLUMNS, int DEPTH>
struct Tile {
  static constexpr int THREADS = 256;
  static_assert(ROWS * DEPTH % THREADS == 0 && COLUMNS * DEPTH % THREADS == 0);
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
  template <Order B_ORDER, class Element>
  __attribute__((device)) void multiply(const Element *__restrict__ a,
                                        const Element *__restrict__ b,
                                        Storage &lds, int first_row, int first_column, int rows,
                                        int columns, int pitch_a, int pitch_b, int begin,
                                        int end) {
    for (int start = begin; start < end; start += DEPTH) {
      UNROLL for (int j = 0; j < ROWS * DEPTH / THREADS; j++) {
        int i = j * THREADS + thread(), r = i / DEPTH, k = i % DEPTH;
        bool inside = first_row + r < rows && start + k < end;
        lds.a[k][r] = inside ? widened(a[(first_row + r) * pitch_a + start + k]) : 0.0f;
      }
      UNROLL for (int j = 0; j < COLUMNS * DEPTH / THREADS; j++) {
        int i = j * THREADS + thread(), c, k;
        if (B_ORDER == Order::K_OF_ROWS) {
          c = i % COLUMNS, k = i / COLUMNS;
        } else {
          c = i / DEPTH, k = i % DEPTH;
        }
        bool inside = first_column + c < columns && start + k < end;
        int at = B_ORDER == Order::K_OF_ROWS ? (start + k) * pitch_b + first_column + c
                                             : (first_column + c) * pitch_b + start + k;
        lds.b[k][c] = inside ? widened(b[at]) : 0.0f;
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

  // The product of rows of x with rows of w, as a linear layer has it
  template <class Element>
  __attribute__((device)) void linear(const Element *__restrict__ x,
                                      const Element *__restrict__ w, Storage &lds, int first_row,
                                      int first_column, int rows, int columns, int depth) {
    clear();
    multiply<Order::ROWS_OF_K>(x, w, lds, first_row, first_column, rows, columns, depth, depth, 0,
                               depth);
  }

  // Replaces each sum by of(sum, column)
  template <class Function>
  __attribute__((device)) void apply(int first_column, Function of) {
    UNROLL for (int i = 0; i < ROW_ITEMS; i++)
      UNROLL for (int j = 0; j < COLUMN_ITEMS; j++)
        sums[i][j] = of(sums[i][j], first_column + column() + j);
  }

  // out[row, column] = of(sum, row, column) for the results inside of the matrix
  template <class Element, class Function>
  __attribute__((device)) void store(Element *__restrict__ out, int first_row, int first_column,
                                     int rows, int columns, Function of) {
    UNROLL for (int i = 0; i < ROW_ITEMS; i++) {
      int r = first_row + row() + i;
      UNROLL for (int j = 0; j < COLUMN_ITEMS; j++) {
        int c = first_column + column() + j;
        if (r < rows && c < columns) out[r * columns + c] = of(sums[i][j], r, c);
      }
    }
  }

  // Over the columns of the tile of row `row() + i`, for all threads that share it
  template <class Op>
  __attribute__((device)) float row_reduce(const float (&values)[COLUMN_ITEMS]) {
    float total = Op::IDENTITY;
    UNROLL for (int j = 0; j < COLUMN_ITEMS; j++) total = Op::of(total, values[j]);
    UNROLL for (int mask = 8; mask > 0; mask /= 2) total = Op::of(total, shuffle_xor(total, mask));
    return total;
  }
};
