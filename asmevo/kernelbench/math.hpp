// Elementary functions and activations in single precision.
#pragma once
#include "device.hpp"

constexpr float LOG2_E = 1.4426950408889634f;

DEVICE float maximum(float a, float b) { return __builtin_fmaxf(a, b); }
DEVICE float minimum(float a, float b) { return __builtin_fminf(a, b); }
DEVICE float clamp(float x, float low, float high) { return minimum(maximum(x, low), high); }
DEVICE float square_root(float x) { return __builtin_sqrtf(x); }
DEVICE float logarithm(float x) { return __builtin_logf(x); }
// __expf()
DEVICE float exponential(float x) { return __builtin_amdgcn_exp2f(x * LOG2_E); }

DEVICE float relu(float x) { return maximum(x, 0.0f); }
DEVICE float leaky_relu(float x, float slope) { return x >= 0.0f ? x : x * slope; }
DEVICE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }
DEVICE float swish(float x) { return x * sigmoid(x); }
DEVICE float tanh(float x) { return 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f); }
DEVICE float softplus(float x) {
  return x > 20.0f ? x : logarithm(1.0f + exponential(x));
}
DEVICE float mish(float x) { return x * tanh(softplus(x)); }

// Abramowitz and Stegun 7.1.26, |error| <= 1.5e-7
DEVICE float erf(float x) {
  float a = __builtin_fabsf(x);
  float t = 1.0f / (1.0f + 0.3275911f * a);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  return __builtin_copysignf(1.0f - p * t * exponential(-a * a), x);
}
DEVICE float gelu(float x) { return 0.5f * x * (1.0f + erf(x * 0.70710678f)); }
DEVICE float gelu_tanh(float x) {
  return 0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}
