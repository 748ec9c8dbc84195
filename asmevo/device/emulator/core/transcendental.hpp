// Transcendental functions for v_exp/log/rcp/rsq/sqrt_f32: evaluated in double precision with IEEE
// operations only and rounded once, so every host computes the same bits, within 1 ULP of the exact
// value (CDNA3 ISA asks for 1 ULP).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace asmevo {

// 2^x: split off the nearest integer, Taylor series of exp(f * ln 2) for |f| <= 1/2, whose
// first omitted term is below 1e-12 relative.
inline float exp2_f32(float x) {
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  double clamped = x;
  clamped = clamped < -200.0 ? -200.0 : clamped;
  clamped = clamped > 200.0 ? 200.0 : clamped;
  clamped = x != x ? 0.0 : clamped;
  const double n = (clamped + kRound) - kRound;
  const double t = (clamped - n) * kLn2;
  double p = 1.0 / 3628800;
  p = p * t + 1.0 / 362880;
  p = p * t + 1.0 / 40320;
  p = p * t + 1.0 / 5040;
  p = p * t + 1.0 / 720;
  p = p * t + 1.0 / 120;
  p = p * t + 1.0 / 24;
  p = p * t + 1.0 / 6;
  p = p * t + 0.5;
  p = p * t + 1.0;
  p = p * t + 1.0;
  const auto exponent = static_cast<std::uint64_t>(static_cast<std::int32_t>(n) + 1023) << 52;
  const auto result = static_cast<float>(p * std::bit_cast<double>(exponent));
  return x != x ? x : result;
}

// log2(x) = e + 2/ln2 * atanh((m - 1) / (m + 1)), m in [sqrt(1/2), sqrt(2)). Inputs are normal,
// zero, infinite or NaN (denormals were flushed).
inline float log2_f32(float x) {
  constexpr double kTwoOverLn2 = 2.885390081777926814720;
  constexpr std::uint32_t kSqrtHalf = 0x3f3504f3u;
  const auto bits = std::bit_cast<std::uint32_t>(x) + (0x3f800000u - kSqrtHalf);
  const auto e = static_cast<std::int32_t>(bits >> 23) - 127;
  const double m = std::bit_cast<float>((bits & 0x7fffffu) + kSqrtHalf);
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double p = 1.0 / 19;
  p = p * q + 1.0 / 17;
  p = p * q + 1.0 / 15;
  p = p * q + 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  p = p * q + 1.0;
  auto result = static_cast<float>(e + kTwoOverLn2 * s * p);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  result = x == kInfinity ? x : result;
  result = x == 0.0f ? -kInfinity : result;
  return x >= 0.0f ? result : std::numeric_limits<float>::quiet_NaN();
}

inline float rcp_f32(float x) { return 1.0f / x; }
inline float sqrt_f32(float x) { return std::sqrt(x); }
inline float rsq_f32(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }

}  // namespace asmevo
