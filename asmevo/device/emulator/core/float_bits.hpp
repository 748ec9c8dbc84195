// f32 and f16 at the bit level: denormal flushing, NaN policy, clamp, min/max, conversions.
#pragma once

#include <bit>

#include "wave.hpp"

namespace asmevo {

inline constexpr u32 kExponent = 0x7f800000u;
// Every NaN that arithmetic or a conversion gives is the one that the launch chose (FpMode), on every
// host; this one unless it says otherwise. Operations whose pseudo-code names the NaN they return (min, max, med3,
// div_fixup) return that one.
inline constexpr u32 kQuietNan = 0x7fc00000u;

inline float as_float(u32 x) { return std::bit_cast<float>(x); }
inline u32 as_bits(float x) { return std::bit_cast<u32>(x); }

// A denormal becomes a zero of its sign when `keep` is the sign bit alone.
inline u32 flush(u32 x, u32 keep) {
  return (x & kExponent) == 0 ? x & keep : x;
}
// `nan` for any NaN.
inline u32 canonical(float x, u32 nan) { return x != x ? nan : as_bits(x); }

// Truncate with saturation; NaN gives 0.
inline u32 to_u32(float x) {
  const float clamped = x > 0.0f ? x : 0.0f;
  return clamped >= 4294967296.0f ? ~0u : static_cast<u32>(static_cast<i64>(clamped));
}
inline u32 to_i32(float x) {
  const double wide = x != x ? 0.0 : static_cast<double>(x);
  const double low = wide < -2147483648.0 ? -2147483648.0 : wide;
  return static_cast<u32>(static_cast<i32>(low > 2147483647.0 ? 2147483647.0 : low));
}
inline float from_u32(u32 x) { return static_cast<float>(static_cast<double>(x)); }
inline float from_i32(u32 x) { return static_cast<float>(static_cast<double>(static_cast<i32>(x))); }

// Round to nearest even; f16 denormals are kept (the denormal mode of f16 and f64).
inline u32 f32_to_f16(u32 x, u32 nan = 0x7e00u) {
  const u32 sign = (x >> 16) & 0x8000u;
  const u32 magnitude = x & ~kSignBit;
  if (magnitude > kExponent) return nan;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 2^16 or more
  if (magnitude < 0x38800000u) {                        // below 2^-14: denormal result
    // Adding 1/2 aligns the result's last bit with the sum's, so the addition rounds.
    const u32 sum = as_bits(as_float(magnitude) + 0.5f);
    return sign | (sum - 0x3f000000u);
  }
  const u32 odd = (magnitude >> 13) & 1u;
  return sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}
inline u32 f16_to_f32(u32 half, u32 nan = kQuietNan) {
  const u32 sign = (half & 0x8000u) << 16;
  const u32 magnitude = half & 0x7fffu;
  if (magnitude > 0x7c00u) return nan;
  if (magnitude == 0x7c00u) return sign | kExponent;
  if (magnitude < 0x400u) return sign | as_bits(static_cast<float>(magnitude) * 0x1p-24f);
  return sign | ((magnitude << 13) + 0x38000000u);
}


// Towards zero: a finite value never becomes an infinity.
inline u32 f32_to_f16_toward_zero(u32 x, u32 nan) {
  const u32 sign = (x >> 16) & 0x8000u;
  const u32 magnitude = x & ~kSignBit;
  if (magnitude > kExponent) return nan;
  if (magnitude == kExponent) return sign | 0x7c00u;
  if (magnitude >= 0x47800000u) return sign | 0x7bffu;
  if (magnitude < 0x38800000u) return sign | static_cast<u32>(as_float(magnitude) * 0x1p24f);
  return sign | ((magnitude - 0x38000000u) >> 13);
}

inline u32 bf16_to_f32(u32 x) { return x << 16; }
// Round to nearest even.
inline u32 f32_to_bf16(u32 x) {
  if ((x & ~kSignBit) > kExponent) return kQuietNan >> 16;
  return (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
}

}  // namespace asmevo
