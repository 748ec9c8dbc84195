// f32 VALU operations. Sources are flushed and results flushed and made canonical according to MODE
// (CDNA3 ISA, "Rounding and Denormal Modes"). The loops here round to nearest even, as the host does;
// other rounding modes and output modifiers go lane by lane through `Exact`, a function of bits.
#include <cmath>

#include "min_max.hpp"
#include "round_integral.hpp"
#include "transcendental.hpp"
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

using soft::Single;

// Clamp to [0, 1]; a NaN becomes 0 only in DX10 mode (CDNA3 ISA, "DX10_CLAMP").
void clamp_row(u32* row, bool dx10) {
  ASMEVO_LANES(i) {
    const float x = as_float(row[i]);
    const float low = x > 0.0f ? x : 0.0f;
    const float high = low < 1.0f ? low : 1.0f;
    row[i] = x != x && !dx10 ? row[i] : as_bits(high);
  }
}

void finish(Wave& w, const Step& s, u32* out) {
  if (s.flags & kFlagClamp) clamp_row(out, w.fp.dx10_clamp);
  w.end_write(s.dst);
}

bool needs_exact(const Wave& w, const Step& s) { return w.fp.directed || s.omod != 0; }

// Transcendentals take and give no denormals in any mode (LLVM, AMDGPULegalizerInfo: v_exp, v_log,
// v_rcp and v_rsq "do not support denormals"), and no rounding mode applies to them.
template <auto F>
u32 transcendental_of(u32 a, u32 nan) {
  return flush(canonical(F(as_float(flush(a, kSignBit))), nan), kSignBit);
}
template <auto F>
u32 transcendental_lane(const FpMode& fp, u32 a) { return transcendental_of<F>(a, fp.nan); }
template <auto F>
void transcendental(Wave& w, const Step& s) {
  if (s.omod != 0) [[unlikely]] {
    return LaneHandler<F32(F32), transcendental_lane<F>, HighHalf::kZero>::run(w, s);
  }
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  const u32 nan = w.fp.nan;
  ASMEVO_LANES(i) out[i] = transcendental_of<F>(a[i], nan);
  finish(w, s, out);
}

template <auto F, auto Exact>
void unary(Wave& w, const Step& s) {
  if (needs_exact(w, s)) [[unlikely]] {
    return LaneHandler<F32(F32), Exact, HighHalf::kZero>::run(w, s);
  }
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  const u32 in = w.fp.keep_in, keep = w.fp.keep_out, nan = w.fp.nan;
  ASMEVO_LANES(i) out[i] = flush(canonical(F(as_float(flush(a[i], in))), nan), keep);
  finish(w, s, out);
}

template <auto F, auto Exact>
void binary(Wave& w, const Step& s) {
  if (needs_exact(w, s)) [[unlikely]] {
    return LaneHandler<F32(F32, F32), Exact, HighHalf::kZero>::run(w, s);
  }
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  u32* out = w.begin_write(s.dst);
  const u32 in = w.fp.keep_in, keep = w.fp.keep_out, nan = w.fp.nan;
  ASMEVO_LANES(i) {
    const float r = F(as_float(flush(a[i], in)), as_float(flush(b[i], in)));
    out[i] = flush(canonical(r, nan), keep);
  }
  finish(w, s, out);
}

template <auto F, auto Exact>
void ternary(Wave& w, const Step& s) {
  if (needs_exact(w, s)) [[unlikely]] {
    return LaneHandler<F32(F32, F32, F32), Exact, HighHalf::kZero>::run(w, s);
  }
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u32* c = w.row(s.src[2], 2);
  u32* out = w.begin_write(s.dst);
  const u32 in = w.fp.keep_in, keep = w.fp.keep_out, nan = w.fp.nan;
  ASMEVO_LANES(i) {
    const float r =
        F(as_float(flush(a[i], in)), as_float(flush(b[i], in)), as_float(flush(c[i], in)));
    out[i] = flush(canonical(r, nan), keep);
  }
  finish(w, s, out);
}

// extreme<Single> of flushed operands without branches.
template <bool Maximum, bool Ieee>
u32 extreme_bits(u32 a, u32 b) {
  const float x = as_float(a), y = as_float(b);
  const bool first = Maximum ? x > y : x < y;
  u32 r = first ? a : b;
  r = x == y ? (Maximum ? a & b : a | b) : r;
  r = y != y ? (x != x ? b : a) : r;
  if constexpr (Ieee) {
    constexpr u32 kQuiet = static_cast<u32>(Single::kQuiet);
    r = y != y && (b & kQuiet) == 0 ? b | kQuiet : r;
    r = x != x && (a & kQuiet) == 0 ? a | kQuiet : r;
  }
  return r;
}
template <bool Maximum, bool Ieee>
u32 extreme_bits3(u32 a, u32 b, u32 c) {
  return extreme_bits<Maximum, Ieee>(extreme_bits<Maximum, Ieee>(a, b), c);
}
template <bool Ieee>
u32 median_bits(u32 a, u32 b, u32 c) {
  const u32 low = extreme_bits<false, Ieee>(a, b), high = extreme_bits<true, Ieee>(a, b);
  const u32 middle = extreme_bits<true, Ieee>(low, extreme_bits<false, Ieee>(high, c));
  const float x = as_float(a), y = as_float(b), z = as_float(c);
  return ((x != x) | (y != y) | (z != z)) ? extreme_bits<false, Ieee>(low, c) : middle;
}

// A result that is one of the operands: the payload of a NaN survives.
template <auto F>
void choose_rows(Wave& w, const Step& s) {
  constexpr bool kThree = std::is_invocable_v<decltype(F), u32, u32, u32>;
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u32* c = kThree ? w.row(s.src[2], 2) : b;
  u32* out = w.begin_write(s.dst);
  const u32 in = w.fp.keep_in, keep = w.fp.keep_out;
  ASMEVO_LANES(i) {
    if constexpr (kThree) {
      out[i] = flush(F(flush(a[i], in), flush(b[i], in), flush(c[i], in)), keep);
    } else {
      out[i] = flush(F(flush(a[i], in), flush(b[i], in)), keep);
    }
  }
  finish(w, s, out);
}
template <class Signature, auto Plain, auto Ieee, auto Exact>
void choose(Wave& w, const Step& s) {
  if (s.omod != 0) [[unlikely]] return LaneHandler<Signature, Exact, HighHalf::kZero>::run(w, s);
  w.fp.ieee ? choose_rows<Ieee>(w, s) : choose_rows<Plain>(w, s);
}

// Word `half` of a packed result takes word op_sel/op_sel_hi of each source.
const u32* packed_row(Wave& w, const Step& s, std::size_t source, std::size_t half) {
  const std::size_t word = ((half == 0 ? s.op_sel : s.op_sel_hi) >> source) & 1;
  const Operand& o = s.src[source];
  const bool neg = ((half == 0 ? s.neg_lo : s.neg_hi) >> source) & 1;
  if (o.kind == Operand::Kind::kVector && !neg) [[likely]] return w.v + (o.index + word) * kLanes;
  if (o.kind == Operand::Kind::kConstant && !neg) return o.rows + word * kLanes;
  Operand changed = o;
  changed.neg = neg;
  // Scratch rows go by source and half, because both halves may read the same word.
  return w.prepare(changed, source * 2 + half, word);
}

template <std::size_t Sources, auto F, auto Exact>
void packed(Wave& w, const Step& s) {
  const u32 *const a0 = packed_row(w, s, 0, 0), *const a1 = packed_row(w, s, 0, 1);
  const u32 *const b0 = packed_row(w, s, 1, 0), *const b1 = packed_row(w, s, 1, 1);
  const u32 *const c0 = Sources == 3 ? packed_row(w, s, 2, 0) : a0;
  const u32 *const c1 = Sources == 3 ? packed_row(w, s, 2, 1) : a1;
  u32* out0 = w.begin_write(s.dst);
  u32* out1 = out0 + kLanes;
  const u32 in = w.fp.keep_in, keep = w.fp.keep_out, nan = w.fp.nan;
  const auto one = [in, keep, nan](u32 a, u32 b, u32 c) {
    const float r = F(as_float(flush(a, in)), as_float(flush(b, in)), as_float(flush(c, in)));
    return flush(canonical(r, nan), keep);
  };
  if (w.fp.directed) [[unlikely]] {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const u64 r0 = Exact(w.fp, a0[i], b0[i], c0[i]);
      out1[i] = static_cast<u32>(Exact(w.fp, a1[i], b1[i], c1[i]));
      out0[i] = static_cast<u32>(r0);
    }
  } else {
    ASMEVO_LANES(i) {
      const u32 r0 = one(a0[i], b0[i], c0[i]);
      const u32 r1 = one(a1[i], b1[i], c1[i]);
      out0[i] = r0;
      out1[i] = r1;
    }
  }
  if (s.flags & kFlagClamp) {
    clamp_row(out0, w.fp.dx10_clamp);
    clamp_row(out1, w.fp.dx10_clamp);
  }
  w.end_write(s.dst, 2);
}

// v_pk_mov_b32: op_sel picks the word of src0 for the low and of src1 for the high result.
void packed_move(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0, s.op_sel & 1);
  const u32* b = w.row(s.src[1], 1, (s.op_sel >> 1) & 1);
  u32* out0 = w.begin_write(s.dst);
  u32* out1 = out0 + kLanes;
  ASMEVO_LANES(i) {
    const u32 lo = a[i], hi = b[i];
    out0[i] = lo;
    out1[i] = hi;
  }
  w.end_write(s.dst, 2);
}

inline float fused(float a, float b, float c) { return std::fma(a, b, c); }

u64 exact_add(const FpMode& fp, u32 a, u32 b) { return soft::add<Single>(a, b, fp.single); }
u64 exact_subtract(const FpMode& fp, u32 a, u32 b) { return exact_add(fp, a, b ^ kSignBit); }
u64 exact_reverse(const FpMode& fp, u32 a, u32 b) { return exact_add(fp, b, a ^ kSignBit); }
u64 exact_multiply(const FpMode& fp, u32 a, u32 b) {
  return soft::multiply<Single>(a, b, fp.single);
}
u64 exact_fused(const FpMode& fp, u32 a, u32 b, u32 c) {
  return soft::fused<Single>(a, b, c, fp.single);
}
// "DX9 rules, 0.0 * x = 0.0" (AMD's pseudo-code).
u64 legacy_multiply(const FpMode& fp, u32 a, u32 b) {
  const u64 x = Single::flush(a, fp.single.keep_in), y = Single::flush(b, fp.single.keep_in);
  return Single::is_zero(x) || Single::is_zero(y) ? 0 : exact_multiply(fp, a, b);
}
// One multiplication by a power of two in double keeps the rounding.
u64 scaled(const FpMode& fp, u32 a, i32 n) {
  if (fp.directed) return soft::scale<Single>(a, n, fp.single);
  const i32 exponent = n < -400 ? -400 : n > 400 ? 400 : n;
  const auto power = std::bit_cast<double>(static_cast<u64>(exponent + 1023) << 52);
  const double product = static_cast<double>(as_float(flush(a, fp.keep_in))) * power;
  return flush(canonical(static_cast<float>(product), fp.nan), fp.keep_out);
}
template <bool Maximum>
u64 exact_extreme(const FpMode& fp, u32 a, u32 b) {
  return extreme<Single, Maximum>(a, b, fp.ieee, fp.single);
}
template <bool Maximum>
u64 exact_extreme3(const FpMode& fp, u32 a, u32 b, u32 c) {
  return extreme3<Single, Maximum>(a, b, c, fp.ieee, fp.single);
}
u64 exact_median(const FpMode& fp, u32 a, u32 b, u32 c) {
  return median<Single>(a, b, c, fp.ieee, fp.single);
}
template <Integral Kind>
u64 exact_integral(const FpMode& fp, u32 a) { return integral<Single, Kind>(a, fp.single); }

using Two = F32(F32, F32);
using Three = F32(F32, F32, F32);
constexpr Shape kV = Shape::kVector;
constexpr Type kSs = Type::kSingles;
#define VOP1(name, exact, ...) \
  {name, kV, 1, {1, 0, 0}, kFloat, unary<[](float a) -> float { return (__VA_ARGS__); }, exact>}
#define TRANS(name, function) {name, kV, 1, {1, 0, 0}, kFloat, transcendental<function>}
#define VOP2(name, exact, ...) \
  {name, kV, 1, {1, 1, 0}, kFloat, \
   binary<[](float a, float b) -> float { return (__VA_ARGS__); }, exact>}
#define FUSED(name, traits) {name, kV, 1, {1, 1, 1}, kFloat | traits, ternary<fused, exact_fused>}

constexpr Operation kTable[] = {
    VOP2("v_add_f32", exact_add, a + b),
    VOP2("v_sub_f32", exact_subtract, a - b),
    VOP2("v_subrev_f32", exact_reverse, b - a),
    VOP2("v_mul_f32", exact_multiply, a * b),
    lane_operation<Two, legacy_multiply>("v_mul_legacy_f32"),
    {"v_max_f32", kV, 1, {1, 1, 0}, kFloat,
     choose<Two, extreme_bits<true, false>, extreme_bits<true, true>, exact_extreme<true>>},
    {"v_min_f32", kV, 1, {1, 1, 0}, kFloat,
     choose<Two, extreme_bits<false, false>, extreme_bits<false, true>, exact_extreme<false>>},
    {"v_max3_f32", kV, 1, {1, 1, 1}, kFloat,
     choose<Three, extreme_bits3<true, false>, extreme_bits3<true, true>, exact_extreme3<true>>},
    {"v_min3_f32", kV, 1, {1, 1, 1}, kFloat,
     choose<Three, extreme_bits3<false, false>, extreme_bits3<false, true>, exact_extreme3<false>>},
    {"v_med3_f32", kV, 1, {1, 1, 1}, kFloat,
     choose<Three, median_bits<false>, median_bits<true>, exact_median>},
    FUSED("v_fma_f32", kNoTraits),
    FUSED("v_fmac_f32", kAccumulate),
    FUSED("v_fmamk_f32", kNoTraits),
    FUSED("v_fmaak_f32", kNoTraits),
    VOP1("v_floor_f32", exact_integral<Integral::kFloor>, std::floor(a)),
    VOP1("v_ceil_f32", exact_integral<Integral::kCeil>, std::ceil(a)),
    VOP1("v_trunc_f32", exact_integral<Integral::kTrunc>, std::trunc(a)),
    VOP1("v_rndne_f32", exact_integral<Integral::kNearest>, std::nearbyint(a)),
    lane_operation<F32(F32), [](const FpMode& fp, u32 a) {
      return fraction<Single>(a, fp.single);
    }>("v_fract_f32"),
    lane_operation<F32(F32), [](const FpMode& fp, u32 a) {
      return frexp_mantissa<Single>(a, fp.single);
    }>("v_frexp_mant_f32"),
    lane_operation<I32(F32), [](const FpMode& fp, u32 a) {
      return frexp_exponent<Single>(a, fp.single);
    }>("v_frexp_exp_i32_f32", kClamp),
    lane_operation<F32(F32, I32), [](const FpMode& fp, u32 a, i32 n) {
      return scaled(fp, a, n);
    }>("v_ldexp_f32"),
    TRANS("v_exp_f32", exp2_f32),
    TRANS("v_log_f32", log2_f32),
    TRANS("v_rcp_f32", rcp_f32),
    TRANS("v_rcp_iflag_f32", rcp_f32),
    TRANS("v_rsq_f32", rsq_f32),
    TRANS("v_sqrt_f32", sqrt_f32),
    // "Legacy semantics" of these two are nowhere described; the names are those of Southern
    // Islands' v_exp_f32 and v_log_f32.
    TRANS("v_exp_legacy_f32", exp2_f32),
    TRANS("v_log_legacy_f32", log2_f32),
    {"v_pk_add_f32", kV, 2, {2, 2, 0}, kPacked | kClamp,
     packed<2, [](float a, float b, float) { return a + b; },
            [](const FpMode& fp, u32 a, u32 b, u32) { return exact_add(fp, a, b); }>,
     {kSs, kSs}},
    {"v_pk_mul_f32", kV, 2, {2, 2, 0}, kPacked | kClamp,
     packed<2, [](float a, float b, float) { return a * b; },
            [](const FpMode& fp, u32 a, u32 b, u32) { return exact_multiply(fp, a, b); }>,
     {kSs, kSs}},
    {"v_pk_fma_f32", kV, 2, {2, 2, 2}, kPacked | kClamp, packed<3, fused, exact_fused>,
     {kSs, kSs, kSs}},
    {"v_pk_mov_b32", kV, 2, {2, 2, 0}, kPacked, packed_move, {kSs, kSs}},
};

}  // namespace

std::span<const Operation> ASMEVO_TABLE(float_operations)() { return kTable; }

}  // namespace asmevo
