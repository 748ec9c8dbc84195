// Rounding to an integral value, the fraction, and splitting into fraction and exponent, on bits.
#pragma once

#include "soft_float.hpp"

namespace asmevo {

enum class Integral { kFloor, kCeil, kTrunc, kNearest };

template <class F, Integral Kind>
u64 integral(u64 x, const FpControl& c) {
  x = F::flush(x, c.keep_in);
  if (F::is_nan(x)) return F::nan(c.nan);
  const u64 sign = x & F::kSign, magnitude = x & F::kMagnitude;
  const auto exponent = static_cast<i32>(magnitude >> F::kMantissa) - F::kBias;
  if (exponent >= static_cast<i32>(F::kMantissa) || magnitude == 0) return x;
  constexpr u64 kOne = static_cast<u64>(F::kBias) << F::kMantissa;
  if (exponent < 0) {
    bool up = false;
    switch (Kind) {
      case Integral::kFloor: up = sign != 0; break;
      case Integral::kCeil: up = sign == 0; break;
      case Integral::kTrunc: break;
      case Integral::kNearest: up = magnitude > kOne - (u64{1} << F::kMantissa); break;  // > 1/2
    }
    return sign | (up ? kOne : 0);
  }
  const u64 unit = u64{1} << (static_cast<i32>(F::kMantissa) - exponent);
  const u64 rest = magnitude & (unit - 1), whole = magnitude - rest;
  bool up = false;
  switch (Kind) {
    case Integral::kFloor: up = rest != 0 && sign != 0; break;
    case Integral::kCeil: up = rest != 0 && sign == 0; break;
    case Integral::kTrunc: break;
    case Integral::kNearest:
      // Below 2 the unit's bit is the hidden one, which is set.
      up = rest > unit / 2 || (rest == unit / 2 && (exponent == 0 || (whole & unit) != 0));
      break;
  }
  return sign | (whole + (up ? unit : 0));
}

// x - floor(x), below 1: LLVM matches min(x - floor(x), the float before 1) as V_FRACT.
template <class F>
u64 fraction(u64 x, const FpControl& c) {
  x = F::flush(x, c.keep_in);
  if (F::is_infinite(x)) return F::nan(c.nan);
  const u64 whole = integral<F, Integral::kFloor>(x, c);
  const u64 r = soft::add<F>(x, whole ^ F::kSign, c);
  constexpr u64 kOne = static_cast<u64>(F::kBias) << F::kMantissa;
  return !F::is_nan(r) && r == kOne ? kOne - 1 : r;
}

// x = mantissa * 2^exponent with 1/2 <= |mantissa| < 1, like C's frexp.
template <class F>
i32 frexp_exponent(u64 x, const FpControl& c) {
  const soft::Number n = soft::unpack<F>(x, c.keep_in);
  return n.is(soft::Number::Kind::kFinite) ? n.exponent + 1 : 0;
}
template <class F>
u64 frexp_mantissa(u64 x, const FpControl& c) {
  soft::Number n = soft::unpack<F>(x, c.keep_in);
  if (n.is(soft::Number::Kind::kFinite)) n.exponent = -1;
  return soft::pack<F>(n, c);
}

}  // namespace asmevo
