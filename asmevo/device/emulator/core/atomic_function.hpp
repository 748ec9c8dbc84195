// What an atomic makes of the old value and its operand.
#pragma once

#include <type_traits>

#include "float_bits.hpp"
#include "wave.hpp"

namespace asmevo {

// f32 and packed 16-bit additions round once to nearest even and keep denormals, whatever the FP
// mode. A sum of two 16-bit floats rounds to f32 first, which changes nothing: f32 has more than
// twice their precision.
inline u32 add_f32(u32 a, u32 b) { return canonical(as_float(a) + as_float(b)); }
template <auto Widen, auto Narrow>
u32 add_pair(u32 a, u32 b) {
  const auto half = [&](u32 shift) {
    const float sum = as_float(Widen(a >> shift)) + as_float(Widen(b >> shift));
    return (Narrow(as_bits(sum)) & 0xffffu) << shift;
  };
  return half(0) | half(16);
}
constexpr auto add_pk_f16 = add_pair<f16_to_f32, f32_to_f16>;
constexpr auto add_pk_bf16 = add_pair<bf16_to_f32, f32_to_bf16>;

template <class T>
using SignedOf = std::make_signed_t<T>;
template <class T> T atomic_add(T a, T b) { return a + b; }
template <class T> T atomic_sub(T a, T b) { return a - b; }
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

}  // namespace asmevo
