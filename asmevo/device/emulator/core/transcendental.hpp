// Transcendental functions for v_exp/log/sin/cos/rcp/rsq/sqrt: evaluated in double precision with
// IEEE operations only and rounded once, so every host computes the same bits. CDNA3 ISA allows
// 1 ULP for f32, 0.51 ULP for f16 and 2^29 ULP for f64.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace asmevo {

// 2^x: split off the nearest integer, Taylor series of exp(f * ln 2) for |f| <= 1/2, whose
// first omitted term is below 1e-12 relative. Not for NaN.
inline double exp2_double(double x) {
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  double clamped = x < -200.0 ? -200.0 : x;
  clamped = clamped > 200.0 ? 200.0 : clamped;
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
  return p * std::bit_cast<double>(exponent);
}
inline float exp2_f32(float x) {
  const auto result = static_cast<float>(exp2_double(x != x ? 0.0 : static_cast<double>(x)));
  return x != x ? x : result;
}

// log2(x) = e + 2/ln2 * atanh((m - 1) / (m + 1)), m in [sqrt(1/2), sqrt(2)). Inputs are normal,
// zero, infinite or NaN (denormals were flushed).
inline double log2_double(float x) {
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
  return e + kTwoOverLn2 * s * p;
}
inline float log2_f32(float x) {
  auto result = static_cast<float>(log2_double(x));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  result = x == kInfinity ? x : result;
  result = x == 0.0f ? -kInfinity : result;
  return x >= 0.0f ? result : std::numeric_limits<float>::quiet_NaN();
}

inline float rcp_f32(float x) { return 1.0f / x; }
inline float sqrt_f32(float x) { return std::sqrt(x); }
inline float rsq_f32(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }


// sin(2 pi x), or cos with a quarter turn more. x - round(x) is exact, and so is the rest within
// an eighth of a turn; the series' first omitted term is below 1e-16 relative.
inline double sin_turns(double x, bool cosine) {
  const double r = x - std::nearbyint(x);
  const double quarter = std::nearbyint(4.0 * r);
  const double t = (r - 0.25 * quarter) * 6.283185307179586476925;
  const double q = t * t;
  const double sine =
      t * (1.0 - q / 6 * (1.0 - q / 20 * (1.0 - q / 42 * (1.0 - q / 72 * (1.0 - q / 110 *
          (1.0 - q / 156 * (1.0 - q / 210 * (1.0 - q / 272))))))));
  const double even =
      1.0 - q / 2 * (1.0 - q / 12 * (1.0 - q / 30 * (1.0 - q / 56 * (1.0 - q / 90 *
          (1.0 - q / 132 * (1.0 - q / 182 * (1.0 - q / 240)))))));
  const int turn = (static_cast<int>(quarter) + (cosine ? 1 : 0)) & 3;
  const double value = (turn & 1) != 0 ? even : sine;
  return (turn & 2) != 0 ? -value : value;
}
// The domain is [-256, 256]: outside it the sine is 0 and the cosine 1 (CDNA3 ISA, V_SIN_F32).
inline double sin_or_zero(double x) {
  if (!(std::fabs(x) <= std::numeric_limits<double>::max())) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::fabs(x) > 256.0 ? 0.0 : x == 0.0 ? x : sin_turns(x, false);
}
inline double cos_or_one(double x) {
  if (!(std::fabs(x) <= std::numeric_limits<double>::max())) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::fabs(x) > 256.0 ? 1.0 : sin_turns(x, true);
}

}  // namespace asmevo
