// IEEE 754 arithmetic in integers, for f16, f32 and f64, in every rounding and denormal mode. It
// serves every mode that the host's own arithmetic (to nearest even) does not, and all operations on
// f16 whose rounding would otherwise happen twice.
//
// Denormal operands are flushed before, denormal results after rounding. A NaN result is the
// quiet NaN that the launch chose (FpMode).
#pragma once

#include <bit>

#include "fp_mode.hpp"
#include "wave.hpp"

namespace asmevo::soft {

using u128 = unsigned __int128;

template <unsigned Exponent, unsigned Mantissa>
struct Format {
  static constexpr unsigned kMantissa = Mantissa;
  static constexpr unsigned kWidth = 1 + Exponent + Mantissa;
  static constexpr i32 kBias = (1 << (Exponent - 1)) - 1;
  static constexpr i32 kLeast = 1 - kBias;  // exponent of the least normal number
  static constexpr u64 kSign = u64{1} << (kWidth - 1);
  static constexpr u64 kInfinity = ((u64{1} << Exponent) - 1) << Mantissa;
  static constexpr u64 kQuiet = u64{1} << (Mantissa - 1);
  static constexpr u64 kNan = kInfinity | kQuiet;
  static constexpr u64 kMagnitude = kSign - 1;
  static constexpr u64 nan(u8 choice) {
    return kNan | ((choice & kNanNegative) != 0 ? kSign : 0) |
           ((choice & kNanFull) != 0 ? kQuiet - 1 : 0);
  }

  static constexpr bool is_nan(u64 x) { return (x & kMagnitude) > kInfinity; }
  static constexpr bool is_signalling(u64 x) { return is_nan(x) && (x & kQuiet) == 0; }
  static constexpr bool is_infinite(u64 x) { return (x & kMagnitude) == kInfinity; }
  static constexpr bool is_zero(u64 x) { return (x & kMagnitude) == 0; }
  static constexpr bool is_denormal(u64 x) { return (x & kInfinity) == 0 && !is_zero(x); }
  // A denormal becomes a zero of its sign.
  static constexpr u64 flush(u64 x, bool keep) {
    return keep || (x & kInfinity) != 0 ? x : x & kSign;
  }
};
using Half = Format<5, 10>;
using Single = Format<8, 23>;
using Wide = Format<11, 52>;

// A number of any format; a finite one is significand * 2^(exponent - 63), its top bit set.
struct Number {
  enum class Kind : u8 { kZero, kFinite, kInfinite, kNan };
  Kind kind;
  bool sign;
  i32 exponent;
  u64 significand;

  bool is(Kind k) const { return kind == k; }
};

template <class F>
Number unpack(u64 bits, bool keep_in) {
  const bool sign = (bits & F::kSign) != 0;
  bits = F::flush(bits, keep_in) & F::kMagnitude;
  if (bits > F::kInfinity) return {Number::Kind::kNan, sign, 0, 0};
  if (bits == F::kInfinity) return {Number::Kind::kInfinite, sign, 0, 0};
  if (bits == 0) return {Number::Kind::kZero, sign, 0, 0};
  const u64 fraction = bits & ((u64{1} << F::kMantissa) - 1);
  const auto field = static_cast<i32>(bits >> F::kMantissa);
  const u64 whole = field == 0 ? fraction : fraction | u64{1} << F::kMantissa;
  const int zeros = std::countl_zero(whole);
  const i32 unit = (field == 0 ? F::kLeast : field - F::kBias) - static_cast<i32>(F::kMantissa);
  return {Number::Kind::kFinite, sign, unit + 63 - zeros, whole << zeros};
}

template <class F>
u64 zero(bool sign) { return sign ? F::kSign : 0; }
template <class F>
u64 infinity(bool sign) { return zero<F>(sign) | F::kInfinity; }

inline int leading_zeros(u128 x) {
  const auto high = static_cast<u64>(x >> 64);
  return high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<u64>(x));
}

// magnitude * 2^unit rounded to F; magnitude is not 0, and an odd one may stand for anything
// between its even neighbours.
template <class F>
u64 round(bool sign, i32 unit, u128 magnitude, const FpControl& c) {
  const i32 top = unit + 127 - leading_zeros(magnitude);
  const i32 last = (top < F::kLeast ? F::kLeast : top) - static_cast<i32>(F::kMantissa);
  const i32 drop = last - unit;
  u128 kept = magnitude;
  bool up = false;
  if (drop <= 0) {
    kept <<= -drop;
  } else if (drop > 127) {
    kept = 0;
    up = (c.round == Round::kUp && !sign) || (c.round == Round::kDown && sign);
  } else {
    const u128 rest = magnitude & ((u128{1} << drop) - 1), half = u128{1} << (drop - 1);
    kept = magnitude >> drop;
    switch (c.round) {
      case Round::kNearest: up = rest > half || (rest == half && (kept & 1) != 0); break;
      case Round::kUp: up = rest != 0 && !sign; break;
      case Round::kDown: up = rest != 0 && sign; break;
      case Round::kZero: break;
    }
  }
  u64 bits = static_cast<u64>(kept) + (up ? 1 : 0);
  if (top >= F::kLeast) {
    const i32 above = top - F::kLeast;
    if (above > 2 * F::kBias) {
      bits = F::kInfinity;
    } else {
      bits += static_cast<u64>(above) << F::kMantissa;
    }
  }
  if (bits >= F::kInfinity) {
    const bool finite = c.saturate || c.round == Round::kZero || (c.round == Round::kUp && sign) ||
                        (c.round == Round::kDown && !sign);
    bits = finite ? F::kInfinity - 1 : F::kInfinity;
  }
  return F::flush(zero<F>(sign) | bits, c.keep_out);
}

template <class F>
u64 pack(const Number& x, const FpControl& c) {
  switch (x.kind) {
    case Number::Kind::kZero: return zero<F>(x.sign);
    case Number::Kind::kInfinite: return infinity<F>(x.sign);
    case Number::Kind::kNan: return F::nan(c.nan);
    case Number::Kind::kFinite: break;
  }
  return round<F>(x.sign, x.exponent - 63, x.significand, c);
}

// A sum of exact zero is +0, but -0 when rounding down; two zeros of one sign keep it.
template <class F>
u64 zero_sum(bool a, bool b, const FpControl& c) {
  return zero<F>(a == b ? a : c.round == Round::kDown);
}

// a * b + c, rounded once to F.
template <class F>
u64 fma(const Number& a, const Number& b, const Number& c, const FpControl& control) {
  using Kind = Number::Kind;
  const bool sign = a.sign != b.sign;
  if (a.is(Kind::kNan) || b.is(Kind::kNan) || c.is(Kind::kNan)) return F::nan(control.nan);
  if (a.is(Kind::kInfinite) || b.is(Kind::kInfinite)) {
    if (a.is(Kind::kZero) || b.is(Kind::kZero)) return F::nan(control.nan);
    return c.is(Kind::kInfinite) && c.sign != sign ? F::nan(control.nan) : infinity<F>(sign);
  }
  if (c.is(Kind::kInfinite)) return infinity<F>(c.sign);
  if (a.is(Kind::kZero) || b.is(Kind::kZero)) {
    return c.is(Kind::kZero) ? zero_sum<F>(sign, c.sign, control) : pack<F>(c, control);
  }
  // Both terms with their top bit at 124. A significand has at most 53 bits, so nothing is lost.
  constexpr i32 kTop = 124;
  u128 product = u128{a.significand} * b.significand;
  const int zeros = leading_zeros(product);
  const i32 exponent = a.exponent + b.exponent + 1 - zeros;
  product >>= 127 - kTop - zeros;
  if (c.is(Kind::kZero)) return round<F>(sign, exponent - kTop, product, control);
  u128 addend = u128{c.significand} << (kTop - 63);
  const i32 distance = exponent - c.exponent;
  u128& lesser = distance >= 0 ? addend : product;
  const i32 shift = distance >= 0 ? distance : -distance;
  if (shift > kTop) {
    lesser = 1;
  } else if (shift > 0) {
    const bool lost = (lesser & ((u128{1} << shift) - 1)) != 0;
    lesser = (lesser >> shift) | (lost ? 1 : 0);
  }
  const i32 unit = (distance >= 0 ? exponent : c.exponent) - kTop;
  if (sign == c.sign) return round<F>(sign, unit, product + addend, control);
  if (product == addend) return zero_sum<F>(sign, c.sign, control);
  return product > addend ? round<F>(sign, unit, product - addend, control)
                          : round<F>(c.sign, unit, addend - product, control);
}

inline Number one() { return {Number::Kind::kFinite, false, 0, u64{1} << 63}; }

template <class F>
u64 add(u64 a, u64 b, const FpControl& c) {
  return fma<F>(unpack<F>(a, c.keep_in), one(), unpack<F>(b, c.keep_in), c);
}
template <class F>
u64 multiply(u64 a, u64 b, const FpControl& c) {
  const Number x = unpack<F>(a, c.keep_in), y = unpack<F>(b, c.keep_in);
  // A zero of the product's sign leaves the sum alone.
  return fma<F>(x, y, {Number::Kind::kZero, x.sign != y.sign, 0, 0}, c);
}
template <class F>
u64 fused(u64 a, u64 b, u64 d, const FpControl& c) {
  return fma<F>(unpack<F>(a, c.keep_in), unpack<F>(b, c.keep_in), unpack<F>(d, c.keep_in), c);
}
// a * 2^n; `n` may be any integer.
template <class F>
u64 scale(u64 a, i32 n, const FpControl& c) {
  Number x = unpack<F>(a, c.keep_in);
  constexpr i32 kFar = 5000;
  x.exponent += n < -kFar ? -kFar : n > kFar ? kFar : n;
  return pack<F>(x, c);
}
template <class To, class From>
u64 convert(u64 a, bool keep_in, const FpControl& c) {
  return pack<To>(unpack<From>(a, keep_in), c);
}
template <class F>
u64 from_integer(bool sign, u64 magnitude, const FpControl& c) {
  return magnitude == 0 ? 0 : round<F>(sign, 0, magnitude, c);
}

}  // namespace asmevo::soft
