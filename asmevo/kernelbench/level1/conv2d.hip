// 3 x 3 convolution; a workgroup takes 16 x 16 positions of four output channels of an image.
#include "conv.hpp"

constexpr int OUTPUTS = 4;
using Convolution = ConvolutionTile<OUTPUTS>;

GLOBAL THREADS(256) void conv2d(float *__restrict__ out, const float *__restrict__ in,
                                const float *__restrict__ weight, int channels, int outputs,
                                int height, int width) {
  SHARED static Convolution::Storage lds;
  const int groups = outputs / OUTPUTS;
  const int image = block_z() / groups, first = block_z() % groups * OUTPUTS;
  Convolution tile;
  tile.convolve(in + image * channels * height * width, weight + first * channels * TAPS, lds,
                channels, height, width);
  tile.store(out + image * outputs * (height - 2) * (width - 2), first, height, width,
             [] __attribute__((device)) (float sum, int) { return sum; });
}
