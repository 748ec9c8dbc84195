// What an atomic makes of the old value and its operands: a function of (old, data), of (old, data,
// second data), or of (mode, old, data...) where the FP mode decides.
#pragma once

#include <type_traits>

#include "float_bits.hpp"
#include "wave.hpp"

namespace asmevo {

template <class T>
using SignedOf = std::make_signed_t<T>;
template <class T> T atomic_add(T a, T b) { return a + b; }
template <class T> T atomic_sub(T a, T b) { return a - b; }
template <class T> T atomic_rsub(T a, T b) { return b - a; }
template <class T> T atomic_swap(T, T b) { return b; }
template <class T> T atomic_and(T a, T b) { return a & b; }
template <class T> T atomic_or(T a, T b) { return a | b; }
template <class T> T atomic_xor(T a, T b) { return a ^ b; }
template <class T> T atomic_umin(T a, T b) { return a < b ? a : b; }
template <class T> T atomic_umax(T a, T b) { return a > b ? a : b; }
template <class T> T atomic_smin(T a, T b) {
  return static_cast<SignedOf<T>>(a) < static_cast<SignedOf<T>>(b) ? a : b;
}
template <class T> T atomic_smax(T a, T b) {
  return static_cast<SignedOf<T>>(a) > static_cast<SignedOf<T>>(b) ? a : b;
}
// inc wraps to 0 past the operand, dec to the operand below 0 or above it.
template <class T> T atomic_inc(T a, T b) { return a >= b ? 0 : a + 1; }
template <class T> T atomic_dec(T a, T b) { return a == 0 || a > b ? b : a - 1; }
// Memory operations take the new value first, LDS operations the comparand.
template <class T> T atomic_cmpswap(T a, T source, T comparand) {
  return a == comparand ? source : a;
}
template <class T> T atomic_cmpst(T a, T comparand, T source) {
  return a == comparand ? source : a;
}
template <class T> T atomic_mskor(T a, T mask, T bits) { return (a & ~mask) | bits; }
inline u32 atomic_wrap(u32 a, u32 b, u32 c) { return a >= b ? a - b : a + c; }

// Floats as their bits. Rules: CDNA3 ISA, "Float Memory Atomics".
template <class T> struct FloatBits;
template <> struct FloatBits<u32> {
  using Float = float;
  static constexpr u32 kSign = kSignBit, kInfinity = kExponent, kQuiet = 0x400000u;
};
template <> struct FloatBits<u64> {
  using Float = double;
  static constexpr u64 kSign = u64{1} << 63, kInfinity = u64{0x7ff} << 52, kQuiet = u64{1} << 51;
};

template <class T> bool is_nan(T x) { return (x & ~FloatBits<T>::kSign) > FloatBits<T>::kInfinity; }
template <class T> bool is_signalling(T x) { return is_nan(x) && !(x & FloatBits<T>::kQuiet); }

// Rounds once to nearest even and keeps denormals. The first NaN, quieted, is the result.
template <class T> T atomic_fadd(T a, T b) {
  using Bits = FloatBits<T>;
  if (is_nan(a)) return a | Bits::kQuiet;
  if (is_nan(b)) return b | Bits::kQuiet;
  const T sum = std::bit_cast<T>(std::bit_cast<typename Bits::Float>(a) +
                                 std::bit_cast<typename Bits::Float>(b));
  return is_nan(sum) ? Bits::kInfinity | Bits::kQuiet : sum;
}

// Ordered by sign and magnitude, so that -0 is below +0.
template <class T> SignedOf<T> float_order(T x) {
  const T magnitude = x & ~FloatBits<T>::kSign;
  return static_cast<SignedOf<T>>(x & FloatBits<T>::kSign ? ~magnitude : magnitude);
}
// A quiet NaN loses; a signalling one wins and becomes quiet.
template <class T, bool Max> T float_select(T a, T b, T ordered_a, T ordered_b) {
  if (is_signalling(a)) return a | FloatBits<T>::kQuiet;
  if (is_signalling(b)) return b | FloatBits<T>::kQuiet;
  if (is_nan(a)) return b;
  if (is_nan(b)) return a;
  const auto x = float_order(ordered_a), y = float_order(ordered_b);
  return (Max ? y > x : y < x) ? b : a;
}
template <class T> T atomic_fmin(T a, T b) { return float_select<T, false>(a, b, a, b); }
template <class T> T atomic_fmax(T a, T b) { return float_select<T, true>(a, b, a, b); }

// A sum of two 16-bit floats rounds to f32 first, which changes nothing: f32 has more than twice
// their precision. Denormals are kept.
template <auto Widen, auto Narrow>
u32 add_pair(u32 a, u32 b) {
  const auto half = [&](u32 shift) {
    const float sum = as_float(Widen(a >> shift)) + as_float(Widen(b >> shift));
    return (Narrow(as_bits(sum)) & 0xffffu) << shift;
  };
  return half(0) | half(16);
}
constexpr auto add_pk_f16 = add_pair<[](u32 x) { return f16_to_f32(x); },
                                     [](u32 x) { return f32_to_f16(x); }>;
constexpr auto add_pk_bf16 = add_pair<bf16_to_f32, f32_to_bf16>;

// LDS flushes denormals as the mode says: both ways in additions, f64 excepted; in comparisons only
// for the comparison itself, except that a compare-and-store also stores the flushed value.
template <class T> T flush_unless(bool keep, T x) {
  using Bits = FloatBits<T>;
  return !keep && (x & Bits::kInfinity) == 0 ? x & Bits::kSign : x;
}
template <class T> bool keeps_inputs(const FpMode& mode) {
  return sizeof(T) == 4 ? mode.single.keep_in : mode.wide.keep_in;
}
inline u32 lds_add_f32(const FpMode& mode, u32 a, u32 b) {
  const bool keep = mode.single.keep_in;
  return flush_unless(mode.single.keep_out,
                      atomic_fadd(flush_unless(keep, a), flush_unless(keep, b)));
}
template <class T, bool Max> T lds_select(const FpMode& mode, T a, T b) {
  const bool keep = keeps_inputs<T>(mode);
  return float_select<T, Max>(a, b, flush_unless(keep, a), flush_unless(keep, b));
}
template <class T> T lds_cmpst(const FpMode& mode, T a, T comparand, T source) {
  using Float = typename FloatBits<T>::Float;
  const bool keep = keeps_inputs<T>(mode);
  const bool same = std::bit_cast<Float>(flush_unless(keep, a)) ==
                    std::bit_cast<Float>(flush_unless(keep, comparand));
  return same ? flush_unless(keep, source) : a;
}
template <u32 Exponent> u32 flush_pair_unless(bool keep, u32 x) {
  if (keep) return x;
  if ((x & Exponent) == 0) x &= 0xffff8000u;
  if ((x >> 16 & Exponent) == 0) x &= 0x8000ffffu;
  return x;
}
template <u32 Exponent, auto Add> u32 lds_add_pair(const FpMode& mode, u32 a, u32 b) {
  const bool keep = mode.half.keep_in;
  return flush_pair_unless<Exponent>(mode.half.keep_out,
                                     Add(flush_pair_unless<Exponent>(keep, a),
                                         flush_pair_unless<Exponent>(keep, b)));
}
constexpr auto lds_add_pk_f16 = lds_add_pair<0x7c00, add_pk_f16>;
constexpr auto lds_add_pk_bf16 = lds_add_pair<0x7f80, add_pk_bf16>;

// How many data operands F takes besides the old value.
template <auto F, class T>
constexpr std::size_t operand_count() {
  if constexpr (std::is_invocable_v<decltype(F), T, T> ||
                std::is_invocable_v<decltype(F), const FpMode&, T, T>) {
    return 1;
  } else {
    return 2;
  }
}

template <auto F, class T>
T apply_atomic(const FpMode& mode, T old, T a, [[maybe_unused]] T b) {
  using Function = decltype(F);
  if constexpr (std::is_invocable_v<Function, T, T>) return F(old, a);
  else if constexpr (std::is_invocable_v<Function, const FpMode&, T, T>) return F(mode, old, a);
  else if constexpr (std::is_invocable_v<Function, T, T, T>) return F(old, a, b);
  else return F(mode, old, a, b);
}

}  // namespace asmevo
