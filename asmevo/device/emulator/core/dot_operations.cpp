// Dot products of packed elements with a 32-bit accumulator. Integer sums are exact and wrap, or
// saturate with clamp. V_DOT2_F32_F16 adds the exact products to the accumulator one after the
// other, each sum rounded (AMD's pseudo-code); V_DOT2C_F32_F16 likewise.
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

template <std::size_t Bits, bool Signed>
i64 dot(u32 a, u32 b, i64 c) {
  constexpr std::size_t kCount = 32 / Bits;
  i64 sum = c;
  for (std::size_t k = 0; k < kCount; ++k) {
    if constexpr (Signed) {
      const auto up = static_cast<u32>(32 - Bits * (k + 1));
      constexpr u32 kDown = 32 - Bits;
      sum += i64{static_cast<i32>(a << up) >> kDown} * (static_cast<i32>(b << up) >> kDown);
    } else {
      constexpr u32 kMask = Bits == 32 ? ~0u : (1u << Bits) - 1;
      sum += i64{(a >> (Bits * k)) & kMask} * ((b >> (Bits * k)) & kMask);
    }
  }
  return sum;
}

u64 dot_f16(const FpMode& fp, u32 a, u32 b, u32 c) {
  u64 sum = c;
  for (u32 shift = 0; shift < 32; shift += 16) {
    sum = soft::fma<soft::Single>(soft::unpack<soft::Half>((a >> shift) & 0xffffu, fp.half.keep_in),
                                  soft::unpack<soft::Half>((b >> shift) & 0xffffu, fp.half.keep_in),
                                  soft::unpack<soft::Single>(sum, fp.single.keep_in), fp.single);
  }
  return sum;
}

// neg_lo and neg_hi negate the halves of the two packed sources, neg_lo the accumulator.
void dot2_f32_f16(Wave& w, const Step& s) {
  const u32* rows[3];
  u32 flip[3] = {};
  for (std::size_t k = 0; k < 3; ++k) {
    rows[k] = w.row(s.src[k], k);
    if ((s.neg_lo >> k) & 1) flip[k] ^= k == 2 ? kSignBit : 0x8000u;
    if (k < 2 && ((s.neg_hi >> k) & 1)) flip[k] ^= kSignBit;
  }
  const FpMode fp = w.fp;
  u32* out = w.begin_write(s.dst);
  for (std::size_t i = 0; i < kLanes; ++i) {
    const u64 sum = dot_f16(fp, rows[0][i] ^ flip[0], rows[1][i] ^ flip[1], rows[2][i] ^ flip[2]);
    out[i] = static_cast<u32>(s.flags & kFlagClamp ? clamped<soft::Single>(sum, fp.dx10_clamp) : sum);
  }
  w.end_write(s.dst);
}

using Unsigned = U32(U32, U32, U32);
using Signed = I32(U32, U32, I32);
constexpr Type kP = Type::kPair;

// "DOT instructions must not use SDWA or OPSEL" (CDNA3 ISA, "Instruction Inputs").
constexpr Operation kTable[] = {
    lane_operation<Unsigned, dot<16, false>>("v_dot2_u32_u16", kClamp),
    lane_operation<Unsigned, dot<8, false>>("v_dot4_u32_u8", kClamp),
    lane_operation<Unsigned, dot<4, false>>("v_dot8_u32_u4", kClamp),
    lane_operation<Signed, dot<16, true>>("v_dot2_i32_i16", kClamp),
    lane_operation<Signed, dot<8, true>>("v_dot4_i32_i8", kClamp),
    lane_operation<Signed, dot<4, true>>("v_dot8_i32_i4", kClamp),
    lane_operation<Signed, dot<16, true>>("v_dot2c_i32_i16", kClamp | kAccumulate),
    lane_operation<Signed, dot<8, true>>("v_dot4c_i32_i8", kClamp | kAccumulate),
    lane_operation<Signed, dot<4, true>>("v_dot8c_i32_i4", kClamp | kAccumulate),
    {"v_dot2_f32_f16", Shape::kVector, 1, {1, 1, 1}, kPacked | kClamp, dot2_f32_f16,
     {kP, kP, Type::kWord}},
    lane_operation<F32(Pair, Pair, F32), dot_f16>("v_dot2c_f32_f16", kAccumulate),
};

}  // namespace

std::span<const Operation> dot_operations() { return kTable; }

}  // namespace asmevo
