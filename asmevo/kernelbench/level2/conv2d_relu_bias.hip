// out = relu(conv(x, w) + conv_bias) + bias; a workgroup takes 16 x 16 positions of eight channels.
#include "conv.hpp"

constexpr int OUTPUTS = 8;
using Convolution = ConvolutionTile<OUTPUTS>;

GLOBAL THREADS(256) void conv2d_relu_bias(float *__restrict__ out, const float *__restrict__ in,
                                          const float *__restrict__ weight,
                                          const float *__restrict__ conv_bias,
                                          const float *__restrict__ bias, int channels,
                                          int outputs, int height, int width) {
  SHARED static Convolution::Storage lds;
  const int groups = outputs / OUTPUTS;
  const int image = block_z() / groups, first = block_z() % groups * OUTPUTS;
  Convolution tile;
  tile.convolve(in + image * channels * height * width, weight + first * channels * TAPS, lds,
                channels, height, width);
  tile.store(out + image * outputs * (height - 2) * (width - 2), first, height, width,
             [=] __attribute__((device)) (float sum, int o) {
               return relu(sum + conv_bias[o]) + bias[o];
             });
}
