// Conversions between formats. Which mode applies follows the destination: a conversion to f16, and
// one from f64, rounds by the f16/f64 mode (LLVM, SIModeRegister: FPDPRounding). Conversions to
// integers truncate and saturate, and give 0 for NaN.
#include <cmath>

#include "float8.hpp"
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

using soft::Half;
using soft::Single;
using soft::Wide;

// Sources flushed by the mode, as doubles, which hold every f16, f32 and f64.
double of_half(const FpMode& fp, u32 a) {
  return as_float(f16_to_f32(static_cast<u32>(Half::flush(a, fp.half.keep_in))));
}
double of_single(const FpMode& fp, u32 a) { return as_float(flush(a, fp.keep_in)); }
double of_wide(const FpMode& fp, u64 a) {
  return std::bit_cast<double>(Wide::flush(a, fp.wide.keep_in));
}

i64 truncated(double x, double low, double high) {
  if (x != x) return 0;
  return static_cast<i64>(x < low ? low : x > high ? high : x);
}
i64 to_i32(double x) { return truncated(x, -2147483648.0, 2147483647.0); }
i64 to_u32(double x) { return truncated(x, 0.0, 4294967295.0); }
i64 to_i16(double x) { return truncated(x, -32768.0, 32767.0); }
i64 to_u16(double x) { return truncated(x, 0.0, 65535.0); }
i64 to_u8(double x) { return truncated(x, 0.0, 255.0); }
// [-1, 1] to [-32767, 32767] and [0, 1] to [0, 65535], to nearest even; the products are exact.
u32 to_snorm(double x) {
  const double clamped = x != x ? 0.0 : x < -1.0 ? -1.0 : x > 1.0 ? 1.0 : x;
  return static_cast<u32>(static_cast<i32>(std::nearbyint(clamped * 32767.0))) & 0xffffu;
}
u32 to_unorm(double x) {
  const double clamped = !(x > 0.0) ? 0.0 : x > 1.0 ? 1.0 : x;
  return static_cast<u32>(std::nearbyint(clamped * 65535.0));
}

// f32 to f16 in the mode's rounding; the usual mode vectorises.
u32 narrow(const FpMode& fp, u32 a) {
  return static_cast<u32>(soft::convert<Half, Single>(a, fp.single.keep_in, fp.half));
}
void to_half(Wave& w, const Step& s) {
  if (!w.fp.plain_half || s.omod != 0 || (s.flags & kFlagClamp) != 0) [[unlikely]] {
    return LaneHandler<F16(F32), narrow, HighHalf::kZero>::run(w, s);
  }
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  const u32 in = w.fp.keep_in, nan = w.fp.nan_half;
  ASMEVO_LANES(i) out[i] = f32_to_f16(flush(a[i], in), nan);
  w.end_write(s.dst);
}
// Exact, and no f32 denormal.
u32 widen(const FpMode& fp, u32 a) {
  return f16_to_f32(static_cast<u32>(Half::flush(a, fp.half.keep_in)), fp.nan);
}

template <bool Signed>
u64 integer_to_single(const FpMode& fp, u32 a) {
  const i64 x = Signed ? i64{static_cast<i32>(a)} : i64{a};
  return soft::from_integer<Single>(x < 0, static_cast<u64>(x < 0 ? -x : x), fp.single);
}
template <bool Signed>
void to_single(Wave& w, const Step& s) {
  if (w.fp.directed || s.omod != 0 || (s.flags & kFlagClamp) != 0) [[unlikely]] {
    return LaneHandler<F32(U32), integer_to_single<Signed>, HighHalf::kZero>::run(w, s);
  }
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  ASMEVO_LANES(i) out[i] = as_bits(Signed ? from_i32(a[i]) : from_u32(a[i]));
  w.end_write(s.dst);
}
template <u32 Byte>
void byte_to_single(Wave& w, const Step& s) {
  if (s.omod != 0 || (s.flags & kFlagClamp) != 0) [[unlikely]] {
    return LaneHandler<F32(U32), [](u32 a) {
      return as_bits(from_u32((a >> (8 * Byte)) & 0xff));
    }, HighHalf::kZero>::run(w, s);
  }
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  ASMEVO_LANES(i) out[i] = as_bits(from_u32((a[i] >> (8 * Byte)) & 0xff));
  w.end_write(s.dst);
}

template <bool Signed>
void from_single(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  const u32 in = w.fp.keep_in;
  ASMEVO_LANES(i) {
    const float x = as_float(flush(a[i], in));
    out[i] = Signed ? asmevo::to_i32(x) : asmevo::to_u32(x);
  }
  w.end_write(s.dst);
}

// Two conversions into the low half, or with the destination's op_sel bit the high half, of a
// register that keeps its other half.
template <u32 Mantissa>
void to_float8_pair(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u32* old = w.v + s.dst * kLanes;
  u32* out = w.begin_write(s.dst);
  const u32 shift = s.op_sel & 8 ? 16 : 0;
  const u32 keep = ~(0xffffu << shift);
  const u32 overflow = w.fp.half.saturate ? kFnuzMost : kFnuzNan;
  ASMEVO_LANES(i) {
    const u32 low = f32_to_fnuz8<Mantissa>(a[i], overflow);
    const u32 high = f32_to_fnuz8<Mantissa>(b[i], overflow);
    out[i] = (old[i] & keep) | ((low | (high << 8)) << shift);
  }
  w.end_write(s.dst);
}

// One stochastic rounding into the byte that op_sel[3:2] names.
template <u32 Mantissa>
void to_float8_stochastic(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u32* old = w.v + s.dst * kLanes;
  u32* out = w.begin_write(s.dst);
  const u32 shift = 8 * (s.op_sel >> 2);
  const u32 keep = ~(0xffu << shift);
  const u32 overflow = w.fp.half.saturate ? kFnuzMost : kFnuzNan;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const u32 byte = f32_to_fnuz8_stochastic<Mantissa>(a[i], b[i], overflow);
    out[i] = (old[i] & keep) | (byte << shift);
  }
  w.end_write(s.dst);
}

template <u32 Mantissa>
void from_float8(Wave& w, const Step& s) {
  if (s.omod != 0 || (s.flags & kFlagClamp) != 0) [[unlikely]] {
    return LaneHandler<F32(U32), [](const FpMode& fp, u32 x) {
      return fnuz8_to_f32<Mantissa>(x, fp.nan);
    }, HighHalf::kZero>::run(w, s);
  }
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  const u32 nan = w.fp.nan;
  ASMEVO_LANES(i) out[i] = fnuz8_to_f32<Mantissa>(a[i], nan);
  w.end_write(s.dst);
}
template <u32 Mantissa>
void from_float8_pair(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  u32* out0 = w.begin_write(s.dst);
  u32* out1 = out0 + kLanes;
  const u32 nan = w.fp.nan;
  ASMEVO_LANES(i) {
    const u32 pair = a[i];
    out0[i] = fnuz8_to_f32<Mantissa>(pair, nan);
    out1[i] = fnuz8_to_f32<Mantissa>(pair >> 8, nan);
  }
  w.end_write(s.dst, 2);
}

// Two f16 towards zero, whatever the mode; an f32 denormal becomes a zero either way.
u32 toward_zero(const FpMode& fp, u32 a) {
  return static_cast<u32>(Half::flush(f32_to_f16_toward_zero(a, fp.nan_half), fp.half.keep_out));
}
u32 to_half_pair(const FpMode& fp, u32 a, u32 b) {
  return toward_zero(fp, a) | (toward_zero(fp, b) << 16);
}
void to_half_pair_toward_zero(Wave& w, const Step& s) {
  if (!w.fp.half.keep_out) [[unlikely]] {
    return LaneHandler<U32(F32, F32), to_half_pair, HighHalf::kZero>::run(w, s);
  }
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  u32* out = w.begin_write(s.dst);
  const u32 nan = w.fp.nan_half;
  ASMEVO_LANES(i) {
    out[i] = f32_to_f16_toward_zero(a[i], nan) | (f32_to_f16_toward_zero(b[i], nan) << 16);
  }
  w.end_write(s.dst);
}

u32 replace_byte(u32 old, u32 which, u32 byte) {
  const u32 shift = 8 * (which & 3);
  return (old & ~(0xffu << shift)) | (byte << shift);
}
// The destination's other bytes survive.
void accumulate_byte(Wave& w, const Step& s) {
  const Source<F32> a(w, s, 0);
  const Source<U32> which(w, s, 1);
  const u32* old = w.v + s.dst * kLanes;
  u32* out = w.begin_write(s.dst);
  for (std::size_t i = 0; i < kLanes; ++i) {
    out[i] = replace_byte(old[i], which[i], static_cast<u32>(to_u8(of_single(w.fp, a[i]))));
  }
  w.end_write(s.dst);
}

u32 unsigned_byte(u32 half) {
  const i32 x = static_cast<std::int16_t>(half);
  return static_cast<u32>(x < 0 ? 0 : x > 255 ? 255 : x);
}
u32 signed_half(i32 x) { return static_cast<u32>(x < -32768 ? -32768 : x > 32767 ? 32767 : x) & 0xffffu; }
u32 unsigned_half(u32 x) { return x > 0xffffu ? 0xffffu : x; }

constexpr Shape kV = Shape::kVector;
constexpr u32 kF = kClamp | kOmod;

constexpr Operation kTable[] = {
    {"v_cvt_f16_f32", kV, 1, {1, 0, 0}, kFloat, to_half},
    lane_operation<F32(F16), widen>("v_cvt_f32_f16"),
    {"v_cvt_f32_i32", kV, 1, {1, 0, 0}, kF, to_single<true>},
    {"v_cvt_f32_u32", kV, 1, {1, 0, 0}, kF, to_single<false>},
    {"v_cvt_f32_ubyte0", kV, 1, {1, 0, 0}, kF, byte_to_single<0>},
    {"v_cvt_f32_ubyte1", kV, 1, {1, 0, 0}, kF, byte_to_single<1>},
    {"v_cvt_f32_ubyte2", kV, 1, {1, 0, 0}, kF, byte_to_single<2>},
    {"v_cvt_f32_ubyte3", kV, 1, {1, 0, 0}, kF, byte_to_single<3>},
    // A 4-bit integer in sixteenths (CDNA3 ISA, V_CVT_OFF_F32_I4).
    lane_operation<F32(U32), [](u32 a) {
      return as_bits(static_cast<float>(static_cast<i32>(a << 28) >> 28) * 0.0625f);
    }>("v_cvt_off_f32_i4"),
    // Saturated already: clamp changes nothing.
    {"v_cvt_i32_f32", kV, 1, {1, 0, 0}, kMods | kClamp, from_single<true>},
    {"v_cvt_u32_f32", kV, 1, {1, 0, 0}, kMods | kClamp, from_single<false>},
    // The sum with 1/2 is exact here.
    lane_operation<I32(F32), [](const FpMode& fp, u32 a) {
      return to_i32(std::floor(of_single(fp, a) + 0.5));
    }>("v_cvt_rpi_i32_f32", kClamp),
    lane_operation<I32(F32), [](const FpMode& fp, u32 a) {
      return to_i32(std::floor(of_single(fp, a)));
    }>("v_cvt_flr_i32_f32", kClamp),
    lane_operation<I32(F64), [](const FpMode& fp, u64 a) {
      return to_i32(of_wide(fp, a));
    }>("v_cvt_i32_f64", kClamp),
    lane_operation<U32(F64), [](const FpMode& fp, u64 a) {
      return to_u32(of_wide(fp, a));
    }>("v_cvt_u32_f64", kClamp),
    lane_operation<I16(F16), [](const FpMode& fp, u32 a) {
      return to_i16(of_half(fp, a));
    }>("v_cvt_i16_f16", kClamp),
    lane_operation<U16(F16), [](const FpMode& fp, u32 a) {
      return to_u16(of_half(fp, a));
    }>("v_cvt_u16_f16", kClamp),
    lane_operation<F64(I32), [](i32 a) {
      return std::bit_cast<u64>(static_cast<double>(a));
    }>("v_cvt_f64_i32"),
    lane_operation<F64(U32), [](u32 a) {
      return std::bit_cast<u64>(static_cast<double>(a));
    }>("v_cvt_f64_u32"),
    lane_operation<F64(F32), [](const FpMode& fp, u32 a) {
      return soft::convert<Wide, Single>(a, fp.single.keep_in, fp.wide);
    }>("v_cvt_f64_f32"),
    lane_operation<F32(F64), [](const FpMode& fp, u64 a) {
      FpControl c = fp.wide;
      c.keep_out = fp.single.keep_out;
      return soft::convert<Single, Wide>(a, fp.wide.keep_in, c);
    }>("v_cvt_f32_f64"),
    lane_operation<F16(I16), [](const FpMode& fp, i32 a) {
      return soft::from_integer<Half>(a < 0, static_cast<u64>(a < 0 ? -a : a), fp.half);
    }>("v_cvt_f16_i16"),
    lane_operation<F16(U16), [](const FpMode& fp, u32 a) {
      return soft::from_integer<Half>(false, a, fp.half);
    }>("v_cvt_f16_u16"),
    lane_operation<I16(F16), [](const FpMode& fp, u32 a) {
      return to_snorm(of_half(fp, a));
    }>("v_cvt_norm_i16_f16"),
    lane_operation<U16(F16), [](const FpMode& fp, u32 a) {
      return to_unorm(of_half(fp, a));
    }>("v_cvt_norm_u16_f16"),
    lane_operation<U32(F32, F32), [](const FpMode& fp, u32 a, u32 b) {
      return to_snorm(of_single(fp, a)) | to_snorm(of_single(fp, b)) << 16;
    }>("v_cvt_pknorm_i16_f32"),
    lane_operation<U32(F32, F32), [](const FpMode& fp, u32 a, u32 b) {
      return to_unorm(of_single(fp, a)) | to_unorm(of_single(fp, b)) << 16;
    }>("v_cvt_pknorm_u16_f32"),
    lane_operation<U32(F16, F16), [](const FpMode& fp, u32 a, u32 b) {
      return to_snorm(of_half(fp, a)) | to_snorm(of_half(fp, b)) << 16;
    }>("v_cvt_pknorm_i16_f16", kOpSel),
    lane_operation<U32(F16, F16), [](const FpMode& fp, u32 a, u32 b) {
      return to_unorm(of_half(fp, a)) | to_unorm(of_half(fp, b)) << 16;
    }>("v_cvt_pknorm_u16_f16", kOpSel),
    lane_operation<U32(U32, U32), [](u32 a, u32 b) {
      return unsigned_half(a) | unsigned_half(b) << 16;
    }>("v_cvt_pk_u16_u32"),
    lane_operation<U32(I32, I32), [](i32 a, i32 b) {
      return signed_half(a) | signed_half(b) << 16;
    }>("v_cvt_pk_i16_i32"),
    lane_operation<U32(Pair), [](u32 a) {
      return unsigned_byte(a) | unsigned_byte(a >> 16) << 8;
    }>("v_sat_pk_u8_i16"),
    lane_operation<U32(F32, U32, U32), [](const FpMode& fp, u32 a, u32 which, u32 old) {
      return replace_byte(old, which, static_cast<u32>(to_u8(of_single(fp, a))));
    }>("v_cvt_pk_u8_f32"),
    {"v_cvt_pkaccum_u8_f32", kV, 1, {1, 1, 0}, kMods | kKeepsDst, accumulate_byte},
    {"v_cvt_pkrtz_f16_f32", kV, 1, {1, 1, 0}, kMods, to_half_pair_toward_zero},
    lane_operation<U32(F16, F16), [](u32 a, u32 b) { return a | b << 16; }>(
        "v_pack_b32_f16", kOpSel),
    {"v_cvt_pk_fp8_f32", kV, 1, {1, 1, 0}, kMods | kOpSel | kKeepsDst,
     to_float8_pair<kFp8Mantissa>},
    {"v_cvt_pk_bf8_f32", kV, 1, {1, 1, 0}, kMods | kOpSel | kKeepsDst,
     to_float8_pair<kBf8Mantissa>},
    {"v_cvt_sr_fp8_f32", kV, 1, {1, 1, 0}, kMods | kOpSel | kKeepsDst,
     to_float8_stochastic<kFp8Mantissa>},
    {"v_cvt_sr_bf8_f32", kV, 1, {1, 1, 0}, kMods | kOpSel | kKeepsDst,
     to_float8_stochastic<kBf8Mantissa>},
    {"v_cvt_f32_fp8", kV, 1, {1, 0, 0}, kF, from_float8<kFp8Mantissa>},
    {"v_cvt_f32_bf8", kV, 1, {1, 0, 0}, kF, from_float8<kBf8Mantissa>},
    {"v_cvt_pk_f32_fp8", kV, 2, {1, 0, 0}, kNoTraits, from_float8_pair<kFp8Mantissa>},
    {"v_cvt_pk_f32_bf8", kV, 2, {1, 0, 0}, kNoTraits, from_float8_pair<kBf8Mantissa>},
};

}  // namespace

std::span<const Operation> conversion_operations() { return kTable; }

}  // namespace asmevo
