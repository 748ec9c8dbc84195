// f16 VALU operations. Sums and products of f16 are computed in f32, whose 24 bits round them
// innocuously twice, and fused ones in f64; other modes than rounding to nearest with denormals go
// through integers.
#include "min_max.hpp"
#include "round_integral.hpp"
#include "sticky.hpp"
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

using soft::Half;
using soft::Single;

float wide(u32 x) { return as_float(f16_to_f32(x)); }

u32 add(const FpMode& fp, u32 a, u32 b) {
  if (fp.plain_half) return f32_to_f16(as_bits(wide(a) + wide(b)), fp.nan_half);
  return static_cast<u32>(soft::add<Half>(a, b, fp.half));
}
u32 subtract(const FpMode& fp, u32 a, u32 b) { return add(fp, a, b ^ 0x8000u); }
u32 subtract_reversed(const FpMode& fp, u32 a, u32 b) { return add(fp, b, a ^ 0x8000u); }
u32 multiply(const FpMode& fp, u32 a, u32 b) {
  if (fp.plain_half) return f32_to_f16(as_bits(wide(a) * wide(b)), fp.nan_half);
  return static_cast<u32>(soft::multiply<Half>(a, b, fp.half));
}
u32 fused(const FpMode& fp, u32 a, u32 b, u32 c) {
  if (fp.plain_half) {
    const double product = static_cast<double>(wide(a)) * static_cast<double>(wide(b));
    return f32_to_f16(sticky_f32(product + static_cast<double>(wide(c))), fp.nan_half);
  }
  return static_cast<u32>(soft::fused<Half>(a, b, c, fp.half));
}
// The product is rounded before the sum (CDNA3 ISA, V_MAD_F16, unlike V_FMA_F16).
u32 multiply_add(const FpMode& fp, u32 a, u32 b, u32 c) { return add(fp, multiply(fp, a, b), c); }

template <bool Maximum>
u32 extreme_of(const FpMode& fp, u32 a, u32 b) {
  return static_cast<u32>(extreme<Half, Maximum>(a, b, fp.ieee, fp.half));
}
template <bool Maximum>
u32 extreme_of3(const FpMode& fp, u32 a, u32 b, u32 c) {
  return static_cast<u32>(extreme3<Half, Maximum>(a, b, c, fp.ieee, fp.half));
}
u32 median_of(const FpMode& fp, u32 a, u32 b, u32 c) {
  return static_cast<u32>(median<Half>(a, b, c, fp.ieee, fp.half));
}
template <Integral Kind>
u32 integral_of(const FpMode& fp, u32 a) {
  return static_cast<u32>(integral<Half, Kind>(a, fp.half));
}

// Packed f16: element `h` of each source is its half op_sel (h = 0) or op_sel_hi (h = 1), negated
// by neg_lo or neg_hi.
template <std::size_t Sources, auto F>
void packed(Wave& w, const Step& s) {
  const u32* rows[3] = {};
  u32 shift[3][2] = {}, flip[3][2] = {};
  for (std::size_t k = 0; k < Sources; ++k) {
    rows[k] = w.row(s.src[k], k);
    shift[k][0] = (s.op_sel >> k) & 1 ? 16 : 0;
    shift[k][1] = (s.op_sel_hi >> k) & 1 ? 16 : 0;
    flip[k][0] = (s.neg_lo >> k) & 1 ? 0x8000u : 0;
    flip[k][1] = (s.neg_hi >> k) & 1 ? 0x8000u : 0;
  }
  const FpMode fp = w.fp;
  const bool clamp = (s.flags & kFlagClamp) != 0;
  u32* out = w.begin_write(s.dst);
  for (std::size_t i = 0; i < kLanes; ++i) {
    u32 result[2];
    for (std::size_t h = 0; h < 2; ++h) {
      const auto element = [&](std::size_t k) {
        return ((rows[k][i] >> shift[k][h]) & 0xffffu) ^ flip[k][h];
      };
      if constexpr (Sources == 2) {
        result[h] = F(fp, element(0), element(1));
      } else {
        result[h] = F(fp, element(0), element(1), element(2));
      }
      if (clamp) result[h] = static_cast<u32>(clamped<Half>(result[h], fp.dx10_clamp));
    }
    out[i] = result[0] | result[1] << 16;
  }
  w.end_write(s.dst);
}

// V_FMA_MIX: op_sel_hi makes a source f16, from the half that op_sel names; neg_hi is abs. The fused
// operation is f32, and the f16 forms convert its result (AMD's pseudo-code of V_FMA_MIXLO_F16).
template <int Half16>  // -1: f32 result; 0, 1: which half it goes to
void mixed(Wave& w, const Step& s) {
  const u32* rows[3];
  for (std::size_t k = 0; k < 3; ++k) rows[k] = w.row(s.src[k], k);
  const FpMode fp = w.fp;
  const u32* old = w.v + s.dst * kLanes;
  u32* out = w.begin_write(s.dst);
  const bool clamp = (s.flags & kFlagClamp) != 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    soft::Number n[3];
    for (std::size_t k = 0; k < 3; ++k) {
      const bool half = (s.op_sel_hi >> k) & 1;
      if (half) {
        n[k] = soft::unpack<Half>((rows[k][i] >> ((s.op_sel >> k) & 1 ? 16 : 0)) & 0xffffu,
                                  fp.half.keep_in);
      } else {
        n[k] = soft::unpack<Single>(rows[k][i], fp.single.keep_in);
      }
      n[k].sign = ((n[k].sign && !((s.neg_hi >> k) & 1)) ? 1 : 0) ^ ((s.neg_lo >> k) & 1);
    }
    const u64 sum = soft::fma<Single>(n[0], n[1], n[2], fp.single);
    if constexpr (Half16 < 0) {
      out[i] = static_cast<u32>(clamp ? clamped<Single>(sum, fp.dx10_clamp) : sum);
    } else {
      u64 half = soft::convert<Half, Single>(sum, true, fp.half);
      if (clamp) half = clamped<Half>(half, fp.dx10_clamp);
      constexpr u32 kShift = Half16 == 0 ? 0 : 16;
      out[i] = (old[i] & ~(0xffffu << kShift)) | static_cast<u32>(half) << kShift;
    }
  }
  w.end_write(s.dst);
}

using Unary = F16(F16);
using Binary = F16(F16, F16);
using Ternary = F16(F16, F16, F16);
constexpr Type kP = Type::kPair, kM = Type::kMixed;
#define PACKED2(name, F) \
  {name, Shape::kVector, 1, {1, 1, 0}, kPacked | kClamp, packed<2, F>, {kP, kP}}

constexpr Operation kTable[] = {
    lane_operation<Binary, add>("v_add_f16"),
    lane_operation<Binary, subtract>("v_sub_f16"),
    lane_operation<Binary, subtract_reversed>("v_subrev_f16"),
    lane_operation<Binary, multiply>("v_mul_f16"),
    lane_operation<Binary, extreme_of<true>>("v_max_f16"),
    lane_operation<Binary, extreme_of<false>>("v_min_f16"),
    lane_operation<Ternary, extreme_of3<true>>("v_max3_f16", kOpSel),
    lane_operation<Ternary, extreme_of3<false>>("v_min3_f16", kOpSel),
    lane_operation<Ternary, median_of>("v_med3_f16", kOpSel),
    lane_operation<Ternary, fused, HighHalf::kKeep>("v_fma_f16", kOpSel),
    lane_operation<Ternary, multiply_add, HighHalf::kKeep>("v_mad_f16", kOpSel),
    lane_operation<Ternary, fused>("v_fma_legacy_f16"),
    lane_operation<Ternary, multiply_add>("v_mad_legacy_f16"),
    lane_operation<Ternary, multiply_add>("v_mac_f16", kAccumulate),
    lane_operation<Ternary, multiply_add>("v_madmk_f16"),
    lane_operation<Ternary, multiply_add>("v_madak_f16"),
    lane_operation<Unary, integral_of<Integral::kFloor>>("v_floor_f16"),
    lane_operation<Unary, integral_of<Integral::kCeil>>("v_ceil_f16"),
    lane_operation<Unary, integral_of<Integral::kTrunc>>("v_trunc_f16"),
    lane_operation<Unary, integral_of<Integral::kNearest>>("v_rndne_f16"),
    lane_operation<Unary, [](const FpMode& fp, u32 a) { return fraction<Half>(a, fp.half); }>(
        "v_fract_f16"),
    lane_operation<F16(F16, I16), [](const FpMode& fp, u32 a, i32 n) {
      return soft::scale<Half>(a, n, fp.half);
    }>("v_ldexp_f16"),
    lane_operation<Unary, [](const FpMode& fp, u32 a) {
      return frexp_mantissa<Half>(a, fp.half);
    }>("v_frexp_mant_f16"),
    lane_operation<I16(F16), [](const FpMode& fp, u32 a) {
      return frexp_exponent<Half>(a, fp.half);
    }>("v_frexp_exp_i16_f16"),
    PACKED2("v_pk_add_f16", add),
    PACKED2("v_pk_mul_f16", multiply),
    PACKED2("v_pk_max_f16", extreme_of<true>),
    PACKED2("v_pk_min_f16", extreme_of<false>),
    {"v_pk_fma_f16", Shape::kVector, 1, {1, 1, 1}, kPacked | kClamp, packed<3, fused>, {kP, kP, kP}},
    {"v_pk_fmac_f16", Shape::kVector, 1, {1, 1, 1}, kPacked | kAccumulate, packed<3, fused>,
     {kP, kP, kP}},
    {"v_fma_mix_f32", Shape::kVector, 1, {1, 1, 1}, kPacked | kClamp, mixed<-1>, {kM, kM, kM}},
    {"v_fma_mixlo_f16", Shape::kVector, 1, {1, 1, 1}, kPacked | kClamp | kKeepsDst, mixed<0>,
     {kM, kM, kM}},
    {"v_fma_mixhi_f16", Shape::kVector, 1, {1, 1, 1}, kPacked | kClamp | kKeepsDst, mixed<1>,
     {kM, kM, kM}},
};

}  // namespace

std::span<const Operation> half_operations() { return kTable; }

}  // namespace asmevo
