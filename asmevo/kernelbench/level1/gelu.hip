// MinGPT's GELU: out = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
// A workgroup takes `span` consecutive vectors of four elements.
#include "math.hpp"

GLOBAL THREADS(256) void gelu_new(float *__restrict__ out, const float *__restrict__ in, int count,
                                  int span) {
  const int vectors = count / 4;
  const int stop = least(vectors, (block_x() + 1) * span);
  const float4 *in4 = (const float4 *)in;
  float4 *out4 = (float4 *)out;
  for (int i = block_x() * span + thread(); i < stop; i += 256) {
    float4 x = in4[i];
    out4[i] = float4{gelu_tanh(x.x), gelu_tanh(x.y), gelu_tanh(x.z), gelu_tanh(x.w)};
  }
  // What is left behind the last whole vector
  const int tail = vectors * 4 + thread();
  if (block_x() == 0 && tail < count) out[tail] = gelu_tanh(in[tail]);
}
