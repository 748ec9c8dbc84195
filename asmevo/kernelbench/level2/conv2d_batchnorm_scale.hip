// out = batch_norm(conv(x, w)) * scale with given mean and variance of each channel; a workgroup
// takes 16 x 16 positions of two channels.
#include "conv.hpp"

constexpr int OUTPUTS = 2;
using Convolution = ConvolutionTile<OUTPUTS>;

GLOBAL THREADS(256) void conv2d_batchnorm_scale(
    float *__restrict__ out, const float *__restrict__ in, const float *__restrict__ weight,
    const float *__restrict__ mean, const float *__restrict__ variance,
    const float *__restrict__ gamma, const float *__restrict__ beta, int channels, int outputs,
    int height, int width, float epsilon, float scale) {
  SHARED static Convolution::Storage lds;
  const int groups = outputs / OUTPUTS;
  const int image = block_z() / groups, first = block_z() % groups * OUTPUTS;
  Convolution tile;
  tile.convolve(in + image * channels * height * width, weight + first * channels * TAPS, lds,
                channels, height, width);
  tile.store(out + image * outputs * (height - 2) * (width - 2), first, height, width,
             [=] __attribute__((device)) (float sum, int o) {
               float normal = (sum - mean[o]) / square_root(variance[o] + epsilon);
               return (normal * gamma[o] + beta[o]) * scale;
             });
}
