// Layer norm of bf16 rows with weight and bias in f32, a workgroup a row; `columns` is a multiple
// of four.
#include "reduce.hpp"

constexpr int THREADS_A_ROW = 256;

DEVICE float4 widened(ushort4 x) {
  return float4{from_bf16(x.x), from_bf16(x.y), from_bf16(x.z), from_bf16(x.w)};
}

GLOBAL THREADS(THREADS_A_ROW) void layer_norm(unsigned short *__restrict__ out,
                                              const unsigned short *__restrict__ in,
                                              const float *__restrict__ weight,
                                              const float *__restrict__ bias, int columns,
                                              float epsilon) {
  SHARED static float partial[THREADS_A_ROW / WAVE];
  const int vectors = columns / 4;
  const ushort4 *row = (const ushort4 *)in + block_x() * vectors;
  ushort4 *result = (ushort4 *)out + block_x() * vectors;
  const float4 *weight4 = (const float4 *)weight, *bias4 = (const float4 *)bias;

  float sum = 0.0f, squares = 0.0f;
  for (int i = thread(); i < vectors; i += THREADS_A_ROW) {
    float4 x = widened(row[i]);
    sum += x.x + x.y + x.z + x.w;
    squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
  }
  const float mean = block_reduce<Sum, THREADS_A_ROW>(sum, partial) / (float)columns;
  const float second = block_reduce<Sum, THREADS_A_ROW>(squares, partial) / (float)columns;
  const float scale = 1.0f / square_root(second - mean * mean + epsilon);

  for (int i = thread(); i < vectors; i += THREADS_A_ROW) {
    float4 y = (widened(row[i]) - mean) * scale * weight4[i] + bias4[i];
    result[i] = ushort4{to_bf16(y.x), to_bf16(y.y), to_bf16(y.z), to_bf16(y.w)};
  }
}
