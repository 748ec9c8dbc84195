// f16 and f64 transcendentals, and sine and cosine. Rounding modes do not apply to them.
//
// The f64 ones are starting values for a Newton iteration: the ISA promises 2^29 ULP, 24 bits. They
// are rounded to 24 bits here, so that code which leaves out the iteration is seen to be wrong.
#include <cmath>

#include "sticky.hpp"
#include "transcendental.hpp"
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

using soft::Half;
using soft::Wide;

// f16 denormals follow the mode; every result is rounded once from a double.
template <auto F>
u32 half_function(const FpMode& fp, u32 a) {
  const u32 x = f16_to_f32(static_cast<u32>(Half::flush(a, fp.half.keep_in)));
  u32 r = f32_to_f16(sticky_f32(F(static_cast<double>(as_float(x)))), fp.nan_half);
  const bool is_finite = (a & Half::kMagnitude) < Half::kInfinity;
  if (fp.half.saturate && is_finite && Half::is_infinite(r)) --r;
  return static_cast<u32>(Half::flush(r, fp.half.keep_out));
}

double reciprocal(double x) { return 1.0 / x; }
double root(double x) { return std::sqrt(x); }
double reciprocal_root(double x) { return 1.0 / std::sqrt(x); }
double power_of_two(double x) { return x != x ? x : exp2_double(x); }
double logarithm(double x) {
  if (x == 0.0) return -std::numeric_limits<double>::infinity();
  if (!(x > 0.0)) return std::numeric_limits<double>::quiet_NaN();
  if (x > std::numeric_limits<float>::max()) return x;
  return log2_double(static_cast<float>(x));
}

template <auto F>
u64 wide_estimate(const FpMode& fp, u64 a) {
  const double r = F(std::bit_cast<double>(Wide::flush(a, fp.wide.keep_in)));
  if (r != r) return fp.nan_wide;
  const u64 bits = std::bit_cast<u64>(r);
  constexpr u64 kDropped = u64{1} << 29;  // of 53 bits, 24 are kept
  const bool is_finite = !Wide::is_infinite(bits);
  return Wide::flush(is_finite ? (bits + kDropped / 2) & ~(kDropped - 1) : bits, fp.wide.keep_out);
}

// f32 denormals are flushed in every mode, as for the other f32 transcendentals.
template <auto F>
u32 turn_function(const FpMode& fp, u32 a) {
  const double x = as_float(flush(a, kSignBit));
  return flush(canonical(static_cast<float>(F(x)), fp.nan), kSignBit);
}

constexpr Operation kTable[] = {
    lane_operation<F16(F16), half_function<reciprocal>>("v_rcp_f16"),
    lane_operation<F16(F16), half_function<root>>("v_sqrt_f16"),
    lane_operation<F16(F16), half_function<reciprocal_root>>("v_rsq_f16"),
    lane_operation<F16(F16), half_function<power_of_two>>("v_exp_f16"),
    lane_operation<F16(F16), half_function<logarithm>>("v_log_f16"),
    lane_operation<F16(F16), half_function<sin_or_zero>>("v_sin_f16"),
    lane_operation<F16(F16), half_function<cos_or_one>>("v_cos_f16"),
    lane_operation<F64(F64), wide_estimate<reciprocal>>("v_rcp_f64"),
    lane_operation<F64(F64), wide_estimate<root>>("v_sqrt_f64"),
    lane_operation<F64(F64), wide_estimate<reciprocal_root>>("v_rsq_f64"),
    lane_operation<F32(F32), turn_function<sin_or_zero>>("v_sin_f32"),
    lane_operation<F32(F32), turn_function<cos_or_one>>("v_cos_f32"),
};

}  // namespace

std::span<const Operation> transcendental_operations() { return kTable; }

}  // namespace asmevo
