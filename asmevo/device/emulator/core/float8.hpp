// The 8-bit floats of gfx942: "FNUZ" e4m3 (fp8) and e5m2 (bf8). Their exponent bias is 8 and 16;
// 0x80 is the only NaN, and there are neither infinities nor a negative zero.
#pragma once

#include "float_bits.hpp"

namespace asmevo {

inline constexpr u32 kFp8Mantissa = 3, kBf8Mantissa = 2;
inline constexpr u32 kFnuzNan = 0x80, kFnuzMost = 0x7f;

template <u32 Mantissa>
inline constexpr u32 kFnuzBias = 1u << (6 - Mantissa);

// The low byte of `x`; exact.
template <u32 Mantissa>
inline u32 fnuz8_to_f32(u32 x, u32 nan) {
  constexpr u32 kRebias = 127 - kFnuzBias<Mantissa>;
  const u32 magnitude = (x & 0x7fu) << (23 - Mantissa);
  // With an exponent one higher a denormal's value appears above that power of two; for the other
  // numbers the difference is 2 x - 2^(1 - bias), never below x. So the lesser one is right.
  constexpr u32 kLeast = (kRebias + 1) << 23;
  const float tiny = as_float(magnitude + kLeast) - as_float(kLeast);
  const float normal = as_float(magnitude + (kRebias << 23));
  const u32 number = as_bits(tiny < normal ? tiny : normal);
  return (x & 0xffu) == kFnuzNan ? nan : number | ((x & 0x80u) << 24);
}

// Round to nearest even. What would round past the largest value, and infinities, become `overflow`:
// NaN, or the largest value of their sign with FP16_OVFL (CDNA3 ISA, "FP8 and BF8 conversions").
template <u32 Mantissa>
inline u32 f32_to_fnuz8(u32 x, u32 overflow = kFnuzNan) {
  constexpr u32 kDropped = 23 - Mantissa;
  constexpr u32 kRebias = 127 - kFnuzBias<Mantissa>;
  const u32 magnitude = x & ~kSignBit;
  u32 code;
  if (magnitude < (kRebias + 1) << 23) {
    // Adding a power of two whose last bit is the format's smallest value rounds to it.
    const float anchor = as_float((kRebias + 1 + kDropped) << 23);
    code = as_bits(as_float(magnitude) + anchor) - as_bits(anchor);
  } else {
    const u32 odd = (magnitude >> kDropped) & 1u;
    code = (magnitude + (1u << (kDropped - 1)) - 1 + odd - (kRebias << 23)) >> kDropped;
  }
  const u32 sign = (x >> 24) & 0x80u;
  const u32 number = code > 0x7f || magnitude == kExponent ? overflow | sign : code | sign;
  return magnitude > kExponent ? kFnuzNan : code == 0 ? 0 : number;
}

// Stochastic rounding: the top bits of `noise`, as many as the format drops, are added to the
// magnitude, which is then cut off. AMD's pseudo-code rounds that sum to nearest and lets a carry out
// of the mantissa vanish; neither would round without bias, so it is not followed there. As in that
// text the noise keeps its place below the format's least normal number, where results tend to zero.
template <u32 Mantissa>
inline u32 f32_to_fnuz8_stochastic(u32 x, u32 noise, u32 overflow) {
  constexpr u32 kDropped = 23 - Mantissa;
  constexpr u32 kRebias = 127 - kFnuzBias<Mantissa>;
  const u32 magnitude = x & ~kSignBit, sign = (x >> 24) & 0x80u;
  if (magnitude > kExponent) return kFnuzNan;
  if (magnitude == kExponent) return overflow | sign;
  const u32 sum = magnitude + (noise >> (32 - kDropped));
  u32 code;
  if (sum < (kRebias + 1) << 23) {
    // In units of the format's smallest value; a scaling by a power of two is exact.
    const float unit = as_float((254 - (kRebias + 1 - Mantissa)) << 23);
    code = static_cast<u32>(as_float(sum) * unit);
  } else {
    code = (sum - (kRebias << 23)) >> kDropped;
  }
  if (code > 0x7f) return overflow | sign;
  return code == 0 ? 0 : code | sign;
}

}  // namespace asmevo
