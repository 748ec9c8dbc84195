// The three operations around the Newton iteration of an IEEE division (AMD's pseudo-code of
// V_DIV_SCALE, V_DIV_FMAS and V_DIV_FIXUP). Where that text cannot be meant literally:
// V_DIV_FMAS scales by 2^64 (f64: 2^128) towards the middle of the range, as the quotient needs to be
// scaled back by what V_DIV_SCALE applied, and in the one rounding of the fused operation; and
// "DENORM" means denormal in the operation's own format.
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

using soft::Half;
using soft::Number;
using soft::Single;
using soft::Wide;

template <class F>
i32 exponent_field(u64 x) {
  return static_cast<i32>((x & F::kMagnitude) >> F::kMantissa);
}

// Whether |a / b| of two finite numbers lies below the least normal number.
template <class F>
bool is_tiny_quotient(const Number& a, const Number& b) {
  return a.exponent - b.exponent - (a.significand < b.significand ? 1 : 0) < F::kLeast;
}

struct Scaled {
  u64 value;
  bool flag;
};

template <class F>
Scaled scale_operand(u64 value, u64 denominator, u64 numerator, u8 nan) {
  constexpr bool kIsWide = F::kMantissa == 52;
  constexpr i32 kNear = kIsWide ? 768 : 96;     // exponents apart: the quotient nears overflow
  constexpr i32 kPower = kIsWide ? 128 : 64;
  constexpr i32 kSmall = kIsWide ? 53 : 23;
  FpControl exact;
  exact.nan = nan;
  const auto scaled = [&](i32 power) { return soft::scale<F>(value, power, exact); };
  if (F::is_zero(numerator) || F::is_zero(denominator)) return {F::nan(nan), false};
  const Number d = soft::unpack<F>(denominator, true), n = soft::unpack<F>(numerator, true);
  const bool finite = d.is(Number::Kind::kFinite), both = finite && n.is(Number::Kind::kFinite);
  const bool tiny_reciprocal = finite && is_tiny_quotient<F>(soft::one(), d);
  const bool tiny_quotient = both && is_tiny_quotient<F>(n, d);
  if (exponent_field<F>(numerator) - exponent_field<F>(denominator) >= kNear) {
    return {value == denominator ? scaled(kPower) : value, true};
  }
  if (F::is_denormal(denominator)) return {scaled(kPower), false};
  if (tiny_reciprocal && tiny_quotient) {
    return {value == denominator ? scaled(-kPower) : value, true};
  }
  if (tiny_reciprocal) return {scaled(-kPower), false};
  if (tiny_quotient) return {value == numerator ? scaled(kPower) : value, true};
  if (exponent_field<F>(numerator) <= kSmall) return {scaled(kPower), false};
  return {value, false};
}

// src0 is one of src1, the denominator, and src2, the numerator.
template <class T>
void div_scale(Wave& w, const Step& s) {
  using F = typename T::Format;
  const Source<T> value(w, s, 0), denominator(w, s, 1), numerator(w, s, 2);
  Destination<T> out(w, s, false);
  const u8 nan = control_of(w.fp, T{}).nan;
  u64 mask = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const Scaled r = scale_operand<F>(value[i], denominator[i], numerator[i], nan);
    mask |= u64{r.flag} << i;
    out.set(i, r.value);
  }
  const u64 active = w.active();
  out.finish();
  w.set_scalar64(s.sdst, mask & active);
}

// Reads VCC: which lanes' operands were scaled.
template <class T>
void div_fmas(Wave& w, const Step& s) {
  using F = typename T::Format;
  constexpr i32 kPower = F::kMantissa == 52 ? 128 : 64;
  const Source<T> a(w, s, 0), b(w, s, 1), c(w, s, 2);
  Destination<T> out(w, s, false);
  const FpControl& control = control_of(w.fp, T{});
  const u64 scaled = w.scalar64(kVcc);
  for (std::size_t i = 0; i < kLanes; ++i) {
    Number x = soft::unpack<F>(a[i], control.keep_in), y = soft::unpack<F>(b[i], control.keep_in);
    Number z = soft::unpack<F>(c[i], control.keep_in);
    if ((scaled >> i) & 1) {
      const i32 power = exponent_field<F>(c[i]) > F::kBias ? kPower : -kPower;
      x.exponent += power;
      z.exponent += power;
    }
    out.set(i, soft::fma<F>(x, y, z, control));
  }
  out.finish();
}

// S0 is the quotient so far, S1 the denominator, S2 the numerator.
template <class F>
u64 div_fixup(u64 quotient, u64 denominator, u64 numerator, const FpControl& c) {
  denominator = F::flush(denominator, c.keep_in);
  numerator = F::flush(numerator, c.keep_in);
  const u64 sign = (denominator ^ numerator) & F::kSign;
  if (F::is_nan(numerator)) return numerator | F::kQuiet;
  if (F::is_nan(denominator)) return denominator | F::kQuiet;
  if (F::is_zero(denominator) && F::is_zero(numerator)) return F::kNan | F::kSign;
  if (F::is_infinite(denominator) && F::is_infinite(numerator)) return F::kNan | F::kSign;
  if (F::is_zero(denominator) || F::is_infinite(numerator)) return sign | F::kInfinity;
  if (F::is_infinite(denominator) || F::is_zero(numerator)) return sign;
  const i32 apart = exponent_field<F>(numerator) - exponent_field<F>(denominator);
  constexpr i32 kUnderflow = F::kMantissa == 52 ? -1075 : F::kMantissa == 23 ? -150 : -100;
  if (apart < kUnderflow) return soft::round<F>(sign != 0, F::kLeast - 200, 1, c);
  if (F::kMantissa != 10 && apart > F::kBias + 1) return soft::round<F>(sign != 0, 2 * F::kBias, 1, c);
  return sign | F::flush(quotient & F::kMagnitude, c.keep_out);
}

template <class T>
auto fixup(const FpMode& fp, typename T::Value q, typename T::Value d, typename T::Value n) {
  return div_fixup<typename T::Format>(q, d, n, control_of(fp, T{}));
}

template <class T>
constexpr Operation with_handler(const char* name, u32 traits, Handler handler) {
  return {name, Shape::kVector, T::kWords, {T::kWords, T::kWords, T::kWords}, traits, handler,
          {T::kType, T::kType, T::kType}};
}
using Single3 = F32(F32, F32, F32);
using Wide3 = F64(F64, F64, F64);
using Half3 = F16(F16, F16, F16);

constexpr Operation kTable[] = {
    with_handler<F32>("v_div_scale_f32", kFloat | kCarryOut, div_scale<F32>),
    with_handler<F64>("v_div_scale_f64", kFloat | kCarryOut, div_scale<F64>),
    with_handler<F32>("v_div_fmas_f32", kFloat, div_fmas<F32>),
    with_handler<F64>("v_div_fmas_f64", kFloat, div_fmas<F64>),
    lane_operation<Single3, fixup<F32>>("v_div_fixup_f32"),
    lane_operation<Wide3, fixup<F64>>("v_div_fixup_f64"),
    lane_operation<Half3, fixup<F16>, HighHalf::kKeep>("v_div_fixup_f16", kOpSel),
    lane_operation<Half3, fixup<F16>>("v_div_fixup_legacy_f16"),
};

}  // namespace

std::span<const Operation> division_operations() { return kTable; }

}  // namespace asmevo
