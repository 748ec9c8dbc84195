// 3 x 3 convolutions, stride 1, no padding, in single precision.
//   in [images, channels, height, width], weight [outputs, channels, 3, 3]
#pragma once
#include "math.hpp"

constexpr int FILTER = 3, TAPS = FILTER * FILTER;

// 16 x 16 positions of OUTPUTS channels for 256 threads, of which each has one position. The
// patches of the input go through LDS, the weights through scalar registers.
template <int OUTPUTS>
struct ConvolutionTile {
  static constexpr int SIDE = 16, PATCH = SIDE + FILTER - 1, THREADS = SIDE * SIDE;

  struct Storage {
    float patch[PATCH][PATCH];
  };

  float sums[OUTPUTS];

  DEVICE int row() { return block_y() * SIDE + thread() / SIDE; }
  DEVICE int column() { return block_x() * SIDE + thread() % SIDE; }

  // `weight` is that of the first of the OUTPUTS channels
  __attribute__((device)) void convolve(const float *__restrict__ image,
                                        const float *__restrict__ weight, Storage &lds,
                                        int channels, int height, int width) {
    UNROLL for (int o = 0; o < OUTPUTS; o++) sums[o] = 0.0f;
    const int y = thread() / SIDE, x = thread() % SIDE;
    for (int c = 0; c < channels; c++) {
      UNROLL for (int i = thread(); i < PATCH * PATCH; i += THREADS) {
        int row = block_y() * SIDE + i / PATCH, column = block_x() * SIDE + i % PATCH;
        bool inside = row < height && column < width;
        lds.patch[i / PATCH][i % PATCH] =
            inside ? image[(c * height + row) * width + column] : 0.0f;
      }
      barrier();
      UNROLL for (int t = 0; t < TAPS; t++) {
        float value = lds.patch[y + t / FILTER][x + t % FILTER];
        UNROLL for (int o = 0; o < OUTPUTS; o++)
          sums[o] += value * weight[(o * channels + c) * TAPS + t];
      }
      barrier();
    }
  }

  // out[first + o, row, column] = of(sum, first + o) for the positions inside of the image
  template <class Function>
  __attribute__((device)) void store(float *__restrict__ out, int first, int height, int width,
                                     Function of) {
    const int out_height = height - FILTER + 1, out_width = width - FILTER + 1;
    if (row() >= out_height || column() >= out_width) return;
    UNROLL for (int o = 0; o < OUTPUTS; o++)
      out[((first + o) * out_height + row()) * out_width + column()] = of(sums[o], first + o);
  }
};

// The OUTPUTS channels at one position, straight from global memory
template <int OUTPUTS>
DEVICE void convolve_at(float (&sums)[OUTPUTS], const float *__restrict__ image,
                        const float *__restrict__ weight, int channels, int height, int width,
                        int row, int column) {
  UNROLL for (int o = 0; o < OUTPUTS; o++) sums[o] = 0.0f;
  for (int c = 0; c < channels; c++) {
    UNROLL for (int t = 0; t < TAPS; t++) {
      float value = image[(c * height + row + t / FILTER) * width + column + t % FILTER];
      UNROLL for (int o = 0; o < OUTPUTS; o++)
        sums[o] += value * weight[(o * channels + c) * TAPS + t];
    }
  }
}
