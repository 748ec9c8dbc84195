// Minimum, maximum and median by AMD's pseudo-code of V_MIN/V_MAX/V_MED3: a number beats a NaN, the
// second operand of two NaNs wins, -0 < +0; IEEE mode hands on a quieted signalling NaN first.
#pragma once

#include "soft_float.hpp"

namespace asmevo {

// Order of two numbers that keeps -0 below +0: sign-magnitude to two's complement.
template <class F>
constexpr i64 ordered(u64 x) {
  return (x & F::kSign) != 0 ? -static_cast<i64>(x & F::kMagnitude) - 1 : static_cast<i64>(x);
}

template <class F, bool Maximum>
u64 extreme(u64 a, u64 b, bool ieee) {
  if (ieee && F::is_signalling(a)) return a | F::kQuiet;
  if (ieee && F::is_signalling(b)) return b | F::kQuiet;
  if (F::is_nan(a)) return b;
  if (F::is_nan(b)) return a;
  return (ordered<F>(a) > ordered<F>(b)) == Maximum ? a : b;
}

template <class F>
u64 median(u64 a, u64 b, u64 c, bool ieee) {
  const auto least = [ieee](u64 x, u64 y) { return extreme<F, false>(x, y, ieee); };
  const auto most = [ieee](u64 x, u64 y) { return extreme<F, true>(x, y, ieee); };
  if (F::is_nan(a) || F::is_nan(b) || F::is_nan(c)) return least(least(a, b), c);
  return most(least(a, b), least(most(a, b), c));
}

// The same on operands and results that the mode flushes.
template <class F, bool Maximum>
u64 extreme(u64 a, u64 b, bool ieee, const FpControl& c) {
  return F::flush(extreme<F, Maximum>(F::flush(a, c.keep_in), F::flush(b, c.keep_in), ieee),
                  c.keep_out);
}
template <class F, bool Maximum>
u64 extreme3(u64 a, u64 b, u64 d, bool ieee, const FpControl& c) {
  return extreme<F, Maximum>(extreme<F, Maximum>(a, b, ieee, c), d, ieee, c);
}
template <class F>
u64 median(u64 a, u64 b, u64 d, bool ieee, const FpControl& c) {
  return F::flush(median<F>(F::flush(a, c.keep_in), F::flush(b, c.keep_in),
                            F::flush(d, c.keep_in), ieee), c.keep_out);
}

}  // namespace asmevo
