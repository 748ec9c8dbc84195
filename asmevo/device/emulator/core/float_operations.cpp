// f32 VALU operations. Sources are flushed and results flushed and made canonical according to the
// mode that the kernel descriptor sets (CDNA3 ISA, "Rounding and Denormal Modes"); rounding is to
// nearest even, the host's own.
#include <cmath>

#include "float8.hpp"
#include "float_bits.hpp"
#include "operation.hpp"
#include "transcendental.hpp"

namespace asmevo {

namespace {

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

// Transcendentals take and give no denormals in any mode (LLVM, AMDGPULegalizerInfo: v_exp, v_log,
// v_rcp and v_rsq "do not support denormals").
template <auto F, bool Transcendental = false>
void unary(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  const u32 in = Transcendental ? kSignBit : w.fp.keep_in;
  const u32 keep = Transcendental ? kSignBit : w.fp.keep_out;
  ASMEVO_LANES(i) out[i] = flush(canonical(F(as_float(flush(a[i], in)))), keep);
  finish(w, s, out);
}

template <auto F>
void binary(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  u32* out = w.begin_write(s.dst);
  const u32 in = w.fp.keep_in, keep = w.fp.keep_out;
  ASMEVO_LANES(i) {
    const float r = F(as_float(flush(a[i], in)), as_float(flush(b[i], in)));
    out[i] = flush(canonical(r), keep);
  }
  finish(w, s, out);
}

template <auto F>
void ternary(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u32* c = w.row(s.src[2], 2);
  u32* out = w.begin_write(s.dst);
  const u32 in = w.fp.keep_in, keep = w.fp.keep_out;
  ASMEVO_LANES(i) {
    const float r =
        F(as_float(flush(a[i], in)), as_float(flush(b[i], in)), as_float(flush(c[i], in)));
    out[i] = flush(canonical(r), keep);
  }
  finish(w, s, out);
}

// f32 -> integer: the result is no float and takes no clamp.
template <auto F>
void to_integer(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  const u32 in = w.fp.keep_in;
  ASMEVO_LANES(i) out[i] = F(as_float(flush(a[i], in)));
  w.end_write(s.dst);
}

template <auto F>
void from_bits(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  ASMEVO_LANES(i) out[i] = as_bits(F(a[i]));
  finish(w, s, out);
}

// f16 -> f32 is exact and sees no f32 denormal.
void from_f16(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  ASMEVO_LANES(i) out[i] = f16_to_f32(a[i]);
  w.end_write(s.dst);
}

// src1 is an integer exponent; one multiplication by a power of two in double keeps the rounding.
void ldexp_row(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  u32* out = w.begin_write(s.dst);
  for (std::size_t i = 0; i < kLanes; ++i) {
    const i32 raw = static_cast<i32>(b[i]);
    const i32 exponent = raw < -400 ? -400 : raw > 400 ? 400 : raw;
    const double scale = std::bit_cast<double>(static_cast<u64>(exponent + 1023) << 52);
    const double product = static_cast<double>(as_float(flush(a[i], w.fp.keep_in))) * scale;
    out[i] = flush(canonical(static_cast<float>(product)), w.fp.keep_out);
  }
  finish(w, s, out);
}

// Word `half` of a packed result takes word op_sel/op_sel_hi of each source.
const u32* packed_row(Wave& w, const Step& s, std::size_t source, std::size_t half) {
  const std::size_t word = ((half == 0 ? s.op_sel : s.op_sel_hi) >> source) & 1;
  Operand o = s.src[source];
  o.neg = ((half == 0 ? s.neg_lo : s.neg_hi) >> source) & 1;
  if (o.kind == Operand::Kind::kVector && !o.neg) return w.v + (o.index + word) * kLanes;
  // Scratch rows go by source and half, because both halves may read the same word.
  return w.prepare(o, source * 2 + half, word);
}

template <std::size_t Sources, auto F>
void packed(Wave& w, const Step& s) {
  const u32* lo[3];
  const u32* hi[3];
  for (std::size_t k = 0; k < 3; ++k) {
    lo[k] = packed_row(w, s, k < Sources ? k : 0, 0);
    hi[k] = packed_row(w, s, k < Sources ? k : 0, 1);
  }
  const u32 *a0 = lo[0], *b0 = lo[1], *c0 = lo[2], *a1 = hi[0], *b1 = hi[1], *c1 = hi[2];
  u32* out0 = w.begin_write(s.dst);
  u32* out1 = out0 + kLanes;
  const u32 in = w.fp.keep_in, keep = w.fp.keep_out;
  const auto one = [in, keep](u32 a, u32 b, u32 c) {
    const float r = F(as_float(flush(a, in)), as_float(flush(b, in)), as_float(flush(c, in)));
    return flush(canonical(r), keep);
  };
  ASMEVO_LANES(i) {
    const u32 r0 = one(a0[i], b0[i], c0[i]);
    const u32 r1 = one(a1[i], b1[i], c1[i]);
    out0[i] = r0;
    out1[i] = r1;
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

// Two conversions into the low half, or with the destination's op_sel bit the high half, of a
// register that keeps its other half.
template <auto F>
void convert_pair(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u32* old = w.v + s.dst * kLanes;
  u32* out = w.begin_write(s.dst);
  const u32 shift = s.op_sel & 8 ? 16 : 0;
  const u32 keep = ~(0xffffu << shift);
  ASMEVO_LANES(i) out[i] = (old[i] & keep) | ((F(a[i]) | (F(b[i]) << 8)) << shift);
  w.end_write(s.dst);
}

template <auto F>
void combine(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u32 shift_a = s.op_sel & 1 ? 16 : 0, shift_b = s.op_sel & 2 ? 16 : 0;
  u32* out = w.begin_write(s.dst);
  ASMEVO_LANES(i) out[i] = F(a[i] >> shift_a, b[i] >> shift_b);
  w.end_write(s.dst);
}

template <u32 Mantissa>
void from_fnuz8(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  ASMEVO_LANES(i) out[i] = fnuz8_to_f32<Mantissa>(a[i]);
  w.end_write(s.dst);
}
template <u32 Mantissa>
void from_fnuz8_pair(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  u32* out0 = w.begin_write(s.dst);
  u32* out1 = out0 + kLanes;
  ASMEVO_LANES(i) {
    const u32 pair = a[i];
    out0[i] = fnuz8_to_f32<Mantissa>(pair);
    out1[i] = fnuz8_to_f32<Mantissa>(pair >> 8);
  }
  w.end_write(s.dst, 2);
}

inline float fused(float a, float b, float c) { return std::fma(a, b, c); }

constexpr Shape kV = Shape::kVector;
#define VOP1(name, ...) \
  {name, kV, 1, {1, 0, 0}, kFloat, unary<[](float a) -> float { return (__VA_ARGS__); }>}
#define TRANS(name, ...) \
  {name, kV, 1, {1, 0, 0}, kFloat, unary<[](float a) -> float { return (__VA_ARGS__); }, true>}
#define VOP2(name, ...) \
  {name, kV, 1, {1, 1, 0}, kFloat, binary<[](float a, float b) -> float { return (__VA_ARGS__); }>}
#define VOP3(name, traits, ...) \
  {name, kV, 1, {1, 1, 1}, traits, \
   ternary<[](float a, float b, float c) -> float { return (__VA_ARGS__); }>}

constexpr Operation kTable[] = {
    VOP2("v_add_f32", a + b),
    VOP2("v_sub_f32", a - b),
    VOP2("v_subrev_f32", b - a),
    VOP2("v_mul_f32", a * b),
    VOP2("v_max_f32", max_f32(a, b)),
    VOP2("v_min_f32", min_f32(a, b)),
    VOP3("v_max3_f32", kFloat, max_f32(max_f32(a, b), c)),
    VOP3("v_min3_f32", kFloat, min_f32(min_f32(a, b), c)),
    VOP3("v_med3_f32", kFloat, med3_f32(a, b, c)),
    VOP3("v_fma_f32", kFloat, fused(a, b, c)),
    VOP3("v_fmac_f32", kFloat | kAccumulate, fused(a, b, c)),
    VOP3("v_fmamk_f32", kNoTraits, fused(a, b, c)),
    VOP3("v_fmaak_f32", kNoTraits, fused(a, b, c)),
    VOP1("v_floor_f32", std::floor(a)),
    VOP1("v_ceil_f32", std::ceil(a)),
    VOP1("v_trunc_f32", std::trunc(a)),
    VOP1("v_rndne_f32", std::nearbyint(a)),
    TRANS("v_exp_f32", exp2_f32(a)),
    TRANS("v_log_f32", log2_f32(a)),
    TRANS("v_rcp_f32", rcp_f32(a)),
    TRANS("v_rcp_iflag_f32", rcp_f32(a)),
    TRANS("v_rsq_f32", rsq_f32(a)),
    TRANS("v_sqrt_f32", sqrt_f32(a)),
    {"v_ldexp_f32", kV, 1, {1, 1, 0}, kClamp, ldexp_row},
    {"v_cvt_u32_f32", kV, 1, {1, 0, 0}, kMods, to_integer<to_u32>},
    {"v_cvt_i32_f32", kV, 1, {1, 0, 0}, kMods, to_integer<to_i32>},
    {"v_cvt_f16_f32", kV, 1, {1, 0, 0}, kMods,
     to_integer<[](float a) { return f32_to_f16(as_bits(a)); }>},
    {"v_cvt_pkrtz_f16_f32", kV, 1, {1, 1, 0}, kMods, combine<[](u32 a, u32 b) -> u32 {
       return f32_to_f16_toward_zero(a) | (f32_to_f16_toward_zero(b) << 16);
     }>},
    {"v_cvt_pk_fp8_f32", kV, 1, {1, 1, 0}, kMods | kOpSel,
     convert_pair<f32_to_fnuz8<kFp8Mantissa>>},
    {"v_cvt_pk_bf8_f32", kV, 1, {1, 1, 0}, kMods | kOpSel,
     convert_pair<f32_to_fnuz8<kBf8Mantissa>>},
    {"v_cvt_f32_fp8", kV, 1, {1, 0, 0}, kNoTraits, from_fnuz8<kFp8Mantissa>},
    {"v_cvt_f32_bf8", kV, 1, {1, 0, 0}, kNoTraits, from_fnuz8<kBf8Mantissa>},
    {"v_cvt_pk_f32_fp8", kV, 2, {1, 0, 0}, kNoTraits, from_fnuz8_pair<kFp8Mantissa>},
    {"v_cvt_pk_f32_bf8", kV, 2, {1, 0, 0}, kNoTraits, from_fnuz8_pair<kBf8Mantissa>},
    // A 4-bit integer in sixteenths (CDNA3 ISA, V_CVT_OFF_F32_I4).
    {"v_cvt_off_f32_i4", kV, 1, {1, 0, 0}, kNoTraits, from_bits<[](u32 a) {
       return static_cast<float>(static_cast<i32>(a << 28) >> 28) * 0.0625f;
     }>},
    {"v_pack_b32_f16", kV, 1, {1, 1, 0}, kOpSel,
     combine<[](u32 a, u32 b) -> u32 { return (a & 0xffffu) | (b << 16); }>},
    {"v_cvt_f32_f16", kV, 1, {1, 0, 0}, kNoTraits, from_f16},
    {"v_cvt_f32_u32", kV, 1, {1, 0, 0}, kNoTraits, from_bits<from_u32>},
    {"v_cvt_f32_i32", kV, 1, {1, 0, 0}, kNoTraits, from_bits<from_i32>},
    {"v_cvt_f32_ubyte0", kV, 1, {1, 0, 0}, kNoTraits,
     from_bits<[](u32 a) { return from_u32(a & 0xff); }>},
    {"v_cvt_f32_ubyte1", kV, 1, {1, 0, 0}, kNoTraits,
     from_bits<[](u32 a) { return from_u32((a >> 8) & 0xff); }>},
    {"v_cvt_f32_ubyte2", kV, 1, {1, 0, 0}, kNoTraits,
     from_bits<[](u32 a) { return from_u32((a >> 16) & 0xff); }>},
    {"v_cvt_f32_ubyte3", kV, 1, {1, 0, 0}, kNoTraits,
     from_bits<[](u32 a) { return from_u32(a >> 24); }>},
    {"v_pk_add_f32", kV, 2, {2, 2, 0}, kPacked | kFloat,
     packed<2, [](float a, float b, float) { return a + b; }>},
    {"v_pk_mul_f32", kV, 2, {2, 2, 0}, kPacked | kFloat,
     packed<2, [](float a, float b, float) { return a * b; }>},
    {"v_pk_fma_f32", kV, 2, {2, 2, 2}, kPacked | kFloat, packed<3, fused>},
    {"v_pk_mov_b32", kV, 2, {2, 2, 0}, kPacked, packed_move},
};

}  // namespace

std::span<const Operation> float_operations() { return kTable; }

}  // namespace asmevo
