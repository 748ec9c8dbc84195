// f64 VALU operations: the host's arithmetic to nearest even with denormals, integers otherwise.
#include <cmath>

#include "min_max.hpp"
#include "round_integral.hpp"
#include "two_over_pi.hpp"
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

using soft::Wide;

double as_double(u64 x) { return std::bit_cast<double>(x); }
u64 canonical(const FpMode& fp, double x) { return x != x ? fp.nan_wide : std::bit_cast<u64>(x); }

u64 add(const FpMode& fp, u64 a, u64 b) {
  if (fp.plain_wide) return canonical(fp, as_double(a) + as_double(b));
  return soft::add<Wide>(a, b, fp.wide);
}
u64 multiply(const FpMode& fp, u64 a, u64 b) {
  if (fp.plain_wide) return canonical(fp, as_double(a) * as_double(b));
  return soft::multiply<Wide>(a, b, fp.wide);
}
u64 fused(const FpMode& fp, u64 a, u64 b, u64 c) {
  if (fp.plain_wide) return canonical(fp, std::fma(as_double(a), as_double(b), as_double(c)));
  return soft::fused<Wide>(a, b, c, fp.wide);
}
template <bool Maximum>
u64 extreme_of(const FpMode& fp, u64 a, u64 b) {
  return extreme<Wide, Maximum>(a, b, fp.ieee, fp.wide);
}
template <Integral Kind>
u64 integral_of(const FpMode& fp, u64 a) { return integral<Wide, Kind>(a, fp.wide); }

// 53 bits of 2/pi from a position that the exponent and the segment number choose, as a double
// (AMD's pseudo-code of V_TRIG_PREOP_F64).
u64 trig_preop(const FpMode& fp, u64 a, u32 segment) {
  const auto exponent = static_cast<i32>((a >> 52) & 0x7ff);
  u32 shift = (segment & 31) * 53;
  if (exponent > 1077) shift += static_cast<u32>(exponent - 1077);
  u64 bits = 0;
  for (u32 k = 0; k < 53; ++k) bits = bits << 1 | two_over_pi_bit(shift + k);
  i32 power = -53 - static_cast<i32>(shift);
  if (exponent >= 1968) power += 128;
  const soft::Number n = soft::unpack<Wide>(std::bit_cast<u64>(static_cast<double>(bits)), true);
  return soft::scale<Wide>(soft::pack<Wide>(n, FpControl{}), power, fp.wide);
}

using Unary = F64(F64);
using Binary = F64(F64, F64);
using Ternary = F64(F64, F64, F64);

constexpr Operation kTable[] = {
    lane_operation<Binary, add>("v_add_f64"),
    lane_operation<Binary, multiply>("v_mul_f64"),
    lane_operation<Binary, extreme_of<true>>("v_max_f64"),
    lane_operation<Binary, extreme_of<false>>("v_min_f64"),
    lane_operation<Ternary, fused>("v_fma_f64"),
    lane_operation<Ternary, fused>("v_fmac_f64", kAccumulate),
    lane_operation<F64(F64, I32), [](const FpMode& fp, u64 a, i32 n) {
      return soft::scale<Wide>(a, n, fp.wide);
    }>("v_ldexp_f64"),
    lane_operation<Unary, integral_of<Integral::kFloor>>("v_floor_f64"),
    lane_operation<Unary, integral_of<Integral::kCeil>>("v_ceil_f64"),
    lane_operation<Unary, integral_of<Integral::kTrunc>>("v_trunc_f64"),
    lane_operation<Unary, integral_of<Integral::kNearest>>("v_rndne_f64"),
    lane_operation<Unary, [](const FpMode& fp, u64 a) { return fraction<Wide>(a, fp.wide); }>(
        "v_fract_f64"),
    lane_operation<Unary, [](const FpMode& fp, u64 a) {
      return frexp_mantissa<Wide>(a, fp.wide);
    }>("v_frexp_mant_f64"),
    lane_operation<I32(F64), [](const FpMode& fp, u64 a) {
      return frexp_exponent<Wide>(a, fp.wide);
    }>("v_frexp_exp_i32_f64"),
    lane_operation<F64(F64, U32), trig_preop>("v_trig_preop_f64"),
};

}  // namespace

std::span<const Operation> double_operations() { return kTable; }

}  // namespace asmevo
