// Integer, bitwise, lane and 64-bit VALU operations.
#include <bit>
#include <utility>

#include "typed_lanes.hpp"

namespace asmevo {

namespace {

template <auto F>
void unary(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  u32* out = w.begin_write(s.dst);
  ASMEVO_LANES(i) out[i] = F(a[i]);
  w.end_write(s.dst);
}

template <auto F>
void binary(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  u32* out = w.begin_write(s.dst);
  ASMEVO_LANES(i) out[i] = F(a[i], b[i]);
  w.end_write(s.dst);
}

template <auto F>
void ternary(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u32* c = w.row(s.src[2], 2);
  u32* out = w.begin_write(s.dst);
  ASMEVO_LANES(i) out[i] = F(a[i], b[i], c[i]);
  w.end_write(s.dst);
}

// Operations that take clamp have their result in i64 too, where it does not wrap.
template <class T, auto F, auto Exact>
void clamped_binary(Wave& w, const Step& s) {
  if (s.flags & kFlagClamp) [[unlikely]] {
    return LaneHandler<T(T, T), Exact, HighHalf::kZero>::run(w, s);
  }
  binary<F>(w, s);
}
template <class T, auto F, auto Exact>
void clamped_ternary(Wave& w, const Step& s) {
  if (s.flags & kFlagClamp) [[unlikely]] {
    return LaneHandler<T(T, T, T), Exact, HighHalf::kZero>::run(w, s);
  }
  ternary<F>(w, s);
}

// A source of one or two words, widened to 64 bits.
struct Wide {
  const u32* lo;
  const u32* hi;
  Wide(Wave& w, const Step& s, std::size_t k)
      : lo(w.row(s.src[k], k, 0)), hi(s.src_words[k] == 2 ? w.row(s.src[k], k, 1) : nullptr) {}
  u64 operator[](std::size_t i) const { return lo[i] | (hi ? u64{hi[i]} << 32 : 0); }
};

template <std::size_t Sources, auto F>
void wide(Wave& w, const Step& s) {
  const Wide a(w, s, 0);
  const Wide b(w, s, 1);
  const Wide c(w, s, Sources == 3 ? 2 : 1);
  u32* lo = w.begin_write(s.dst);
  u32* hi = lo + kLanes;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const u64 r = F(a[i], b[i], c[i]);
    lo[i] = static_cast<u32>(r);
    hi[i] = static_cast<u32>(r >> 32);
  }
  w.end_write(s.dst, 2);
}

void wide_move(Wave& w, const Step& s) {
  const u32* lo = w.row(s.src[0], 0, 0);
  const u32* hi = w.row(s.src[0], 0, 1);
  u32* out0 = w.begin_write(s.dst);
  u32* out1 = out0 + kLanes;
  ASMEVO_LANES(i) {
    const u32 a = lo[i], b = hi[i];
    out0[i] = a;
    out1[i] = b;
  }
  w.end_write(s.dst, 2);
}

// Add or subtract with a carry mask; inactive lanes of the mask become 0.
template <bool Subtract, bool Reverse, bool CarryIn>
void carry(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[Reverse ? 1 : 0], Reverse ? 1 : 0);
  const u32* b = w.row(s.src[Reverse ? 0 : 1], Reverse ? 0 : 1);
  const u64 in = CarryIn ? w.read64(s.src[2]) : 0;
  const bool clamp = (s.flags & kFlagClamp) != 0;
  u32* out = w.begin_write(s.dst);
  u64 mask = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const u64 bit = (in >> i) & 1;
    const u64 r = Subtract ? u64{a[i]} - b[i] - bit : u64{a[i]} + b[i] + bit;
    const u64 over = (r >> 32) & 1;
    out[i] = clamp && over != 0 ? (Subtract ? 0 : ~0u) : static_cast<u32>(r);
    mask |= over << i;
  }
  const u64 active = w.active();
  w.end_write(s.dst);
  w.set_scalar64(s.sdst, mask & active);
}

// The mask is bit 64 of the 65-bit sum: a carry, or the sign of a signed one.
template <bool Signed>
void mad_64(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const Wide c(w, s, 2);
  const bool clamp = (s.flags & kFlagClamp) != 0;
  u32* lo = w.begin_write(s.dst);
  u32* hi = lo + kLanes;
  u64 mask = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    u64 r;
    bool over;
    if constexpr (Signed) {
      const i64 product = i64{static_cast<i32>(a[i])} * static_cast<i32>(b[i]);
      const u64 x = static_cast<u64>(product), y = c[i];
      r = x + y;
      const bool overflow = (((x ^ r) & (y ^ r)) >> 63) != 0;
      over = (r >> 63 != 0) != overflow;
      if (clamp && overflow) r = product < 0 ? u64{1} << 63 : ~(u64{1} << 63);
    } else {
      const u64 product = u64{a[i]} * b[i];
      r = product + c[i];
      over = r < product;
      if (clamp && over) r = ~u64{0};
    }
    mask |= u64{over} << i;
    lo[i] = static_cast<u32>(r);
    hi[i] = static_cast<u32>(r >> 32);
  }
  const u64 active = w.active();
  w.end_write(s.dst, 2);
  w.set_scalar64(s.sdst, mask & active);
}

// Exchanges two registers in the active lanes.
void swap(Wave& w, const Step& s) {
  u32* a = w.v + s.dst * kLanes;
  u32* b = w.v + s.src[0].index * kLanes;
  const u64 active = w.active();
  for (std::size_t i = 0; i < kLanes; ++i) {
    if ((active >> i) & 1) std::swap(a[i], b[i]);
  }
}

void conditional_mask(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u64 select = w.read64(s.src[2]);
  u32* out = w.begin_write(s.dst);
  const u32 half[2] = {static_cast<u32>(select), static_cast<u32>(select >> 32)};
  for (std::size_t h = 0; h < 2; ++h) {
    const u32 bits = half[h];
    const u32 *x = a + 32 * h, *y = b + 32 * h;
    u32* to = out + 32 * h;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (u32 i = 0; i < 32; ++i) to[i] = ((bits >> i) & 1u) != 0 ? y[i] : x[i];
  }
  w.end_write(s.dst);
}

// mbcnt counts the bits of a mask that belong to lower lanes; it takes the mask per lane.
template <bool High>
void mask_count(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  u32* out = w.begin_write(s.dst);
  for (std::size_t i = 0; i < kLanes; ++i) {
    const u64 below = (u64{1} << i) - 1;
    const u32 mask = static_cast<u32>(High ? below >> 32 : below);
    out[i] = b[i] + static_cast<u32>(std::popcount(a[i] & mask));
  }
  w.end_write(s.dst);
}

// v_readlane and v_writelane ignore EXEC; the lane number is taken modulo 64.
void read_lane(Wave& w, const Step& s) {
  w.s[s.dst] = w.v[s.src[0].index * kLanes + (w.read32(s.src[1]) & 63)];
}
void write_lane(Wave& w, const Step& s) {
  w.v[s.dst * kLanes + (w.read32(s.src[1]) & 63)] = w.read32(s.src[0]);
}
// The first active lane; lane 0 when EXEC is 0.
void read_first_lane(Wave& w, const Step& s) {
  const u64 exec = w.exec();
  const int lane = exec == 0 ? 0 : std::countr_zero(exec);
  w.s[s.dst] = w.row(s.src[0], 0)[lane];
}

u32 byte_of(u32 hi, u32 lo, u32 select) {
  const u64 both = (u64{hi} << 32) | lo;
  if (select >= 13) return 0xff;
  if (select == 12) return 0;
  // 8 to 11 replicate the sign of a 16-bit half: of lo[15], lo[31], hi[15], hi[31].
  if (select >= 8) return ((both >> (16 * (select - 8) + 15)) & 1) ? 0xff : 0;
  return static_cast<u32>(both >> (8 * select)) & 0xff;
}
// CDNA3 ISA, V_PERM_B32: src0 is the high, src1 the low half of the 8 bytes to choose from.
u32 permute(u32 a, u32 b, u32 select) {
  u32 r = 0;
  for (u32 k = 0; k < 4; ++k) r |= byte_of(a, b, (select >> (8 * k)) & 0xff) << (8 * k);
  return r;
}
// A uniform selector that only picks bytes is one byte mask and shift per result byte.
void permute_rows(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  const u32* c = w.row(s.src[2], 2);
  u32* out = w.begin_write(s.dst);
  const u32 select = c[0];
  const auto selector = [&](u32 k) { return (select >> (8 * k)) & 0xff; };
  bool signs = false;
  for (u32 k = 0; k < 4; ++k) signs |= selector(k) >= 8 && selector(k) < 12;
  // Two bytes side by side for each half of the result, as kernels pack pairs.
  const auto half_shift = [&](u32 k) { return 8 * (selector(k) & 3); };
  const auto is_half = [&](u32 k) {
    return selector(k) < 8 && half_shift(k) <= 16 && selector(k + 1) == selector(k) + 1;
  };
  if (s.src[2].kind != Operand::Kind::kVector && is_half(0) && is_half(2)) {
    const u32* low = selector(0) >= 4 ? a : b;
    const u32* high = selector(2) >= 4 ? a : b;
    const u32 low_shift = half_shift(0), high_shift = 16 - half_shift(2);
    ASMEVO_LANES(i) {
      out[i] = ((low[i] >> low_shift) & 0xffffu) | ((high[i] << high_shift) & 0xffff0000u);
    }
  } else if (s.src[2].kind != Operand::Kind::kVector && !signs) {
    u32 shift[4], high[4], keep[4], ones = 0;
    for (u32 k = 0; k < 4; ++k) {
      const u32 n = selector(k);
      shift[k] = 8 * (n & 3);
      high[k] = n >= 4 ? ~0u : 0u;
      keep[k] = n < 8 ? 0xffu : 0u;
      ones |= (n > 12 ? 0xffu : 0u) << (8 * k);
    }
    ASMEVO_LANES(i) {
      const u32 x = a[i], y = b[i];
      u32 r = ones;
      for (u32 k = 0; k < 4; ++k) {
        r |= ((((x & high[k]) | (y & ~high[k])) >> shift[k]) & keep[k]) << (8 * k);
      }
      out[i] = r;
    }
  } else {
    for (std::size_t i = 0; i < kLanes; ++i) out[i] = permute(a[i], b[i], c[i]);
  }
  w.end_write(s.dst);
}

u32 reverse_bits(u32 x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
  x = ((x >> 8) & 0x00ff00ffu) | ((x & 0x00ff00ffu) << 8);
  return (x >> 16) | (x << 16);
}
u32 leading_zeros(u32 x) { return x == 0 ? ~0u : static_cast<u32>(std::countl_zero(x)); }
u32 bfe_u32(u32 a, u32 b, u32 c) {
  return (a >> (b & 31)) & ((1u << (c & 31)) - 1);
}
u32 bfe_i32(u32 a, u32 b, u32 c) {
  const u32 width = c & 31, offset = b & 31;
  if (width == 0) return 0;
  const u32 field = static_cast<u32>(static_cast<i32>(a) >> offset);
  return static_cast<u32>(static_cast<i32>(field << (32 - width)) >> (32 - width));
}
i32 sext24(u32 x) { return static_cast<i32>(x << 8) >> 8; }
i64 low24(i64 x) { return x & 0xffffff; }
i64 signed24(i64 x) { return sext24(static_cast<u32>(x)); }
i32 si(u32 x) { return static_cast<i32>(x); }
u32 min_i(u32 a, u32 b) { return si(a) < si(b) ? a : b; }
u32 max_i(u32 a, u32 b) { return si(a) > si(b) ? a : b; }
u32 min_u(u32 a, u32 b) { return a < b ? a : b; }
u32 max_u(u32 a, u32 b) { return a > b ? a : b; }

constexpr Shape kV = Shape::kVector;
#define VOP1(name, ...) \
  {name, kV, 1, {1, 0, 0}, kNoTraits, unary<[](u32 a) -> u32 { return (__VA_ARGS__); }>}
#define VOP2(name, ...) \
  {name, kV, 1, {1, 1, 0}, kNoTraits, binary<[](u32 a, u32 b) -> u32 { return (__VA_ARGS__); }>}
#define VOP3(name, ...) \
  {name, kV, 1, {1, 1, 1}, kNoTraits, \
   ternary<[](u32 a, u32 b, u32 c) -> u32 { return (__VA_ARGS__); }>}
#define CLAMP2(name, T, exact, ...) \
  {name, kV, 1, {1, 1, 0}, kClamp, \
   clamped_binary<T, [](u32 a, u32 b) -> u32 { return (__VA_ARGS__); }, \
                  [](i64 a, i64 b) -> i64 { return (exact); }>}
#define CLAMP3(name, T, exact, ...) \
  {name, kV, 1, {1, 1, 1}, kClamp, \
   clamped_ternary<T, [](u32 a, u32 b, u32 c) -> u32 { return (__VA_ARGS__); }, \
                   [](i64 a, i64 b, i64 c) -> i64 { return (exact); }>}
#define WIDE2(name, A, B, ...) \
  {name, kV, 2, {A, B, 0}, kNoTraits, wide<2, [](u64 a, u64 b, u64) -> u64 { return (__VA_ARGS__); }>}

constexpr Operation kTable[] = {
    VOP1("v_mov_b32", a),
    VOP1("v_not_b32", ~a),
    VOP1("v_bfrev_b32", reverse_bits(a)),
    VOP1("v_ffbh_u32", leading_zeros(a)),
    VOP1("v_ffbl_b32", a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a))),
    VOP1("v_ffbh_i32", leading_zeros(si(a) < 0 ? ~a : a)),
    VOP2("v_and_b32", a & b),
    VOP2("v_or_b32", a | b),
    VOP2("v_xor_b32", a ^ b),
    VOP2("v_xnor_b32", ~(a ^ b)),
    VOP2("v_lshlrev_b32", b << (a & 31)),
    VOP2("v_lshrrev_b32", b >> (a & 31)),
    VOP2("v_ashrrev_i32", static_cast<u32>(si(b) >> (a & 31))),
    CLAMP2("v_add_u32", U32, a + b, a + b),
    CLAMP2("v_sub_u32", U32, a - b, a - b),
    CLAMP2("v_subrev_u32", U32, b - a, b - a),
    CLAMP2("v_add_i32", I32, a + b, a + b),
    CLAMP2("v_sub_i32", I32, a - b, a - b),
    VOP2("v_mul_lo_u32", a * b),
    VOP2("v_mul_hi_u32", static_cast<u32>((u64{a} * b) >> 32)),
    VOP2("v_mul_hi_i32", static_cast<u32>((i64{si(a)} * si(b)) >> 32)),
    CLAMP2("v_mul_u32_u24", U32, low24(a) * low24(b), (a & 0xffffffu) * (b & 0xffffffu)),
    VOP2("v_mul_hi_u32_u24", static_cast<u32>((u64{a & 0xffffffu} * (b & 0xffffffu)) >> 32)),
    CLAMP2("v_mul_i32_i24", I32, signed24(a) * signed24(b),
           static_cast<u32>(i64{sext24(a)} * sext24(b))),
    VOP2("v_mul_hi_i32_i24", static_cast<u32>((i64{sext24(a)} * sext24(b)) >> 32)),
    VOP2("v_min_i32", min_i(a, b)),
    VOP2("v_max_i32", max_i(a, b)),
    VOP2("v_min_u32", min_u(a, b)),
    VOP2("v_max_u32", max_u(a, b)),
    VOP2("v_bcnt_u32_b32", static_cast<u32>(std::popcount(a)) + b),
    VOP2("v_bfm_b32", ((1u << (a & 31)) - 1) << (b & 31)),
    CLAMP3("v_mad_u32_u24", U32, low24(a) * low24(b) + c,
           (a & 0xffffffu) * (b & 0xffffffu) + c),
    CLAMP3("v_mad_i32_i24", I32, signed24(a) * signed24(b) + c,
           static_cast<u32>(i64{sext24(a)} * sext24(b)) + c),
    VOP3("v_add3_u32", a + b + c),
    VOP3("v_lshl_add_u32", (a << (b & 31)) + c),
    VOP3("v_add_lshl_u32", (a + b) << (c & 31)),
    VOP3("v_lshl_or_b32", (a << (b & 31)) | c),
    VOP3("v_and_or_b32", (a & b) | c),
    VOP3("v_or3_b32", a | b | c),
    VOP3("v_xad_u32", (a ^ b) + c),
    VOP3("v_bfe_u32", bfe_u32(a, b, c)),
    VOP3("v_bfe_i32", bfe_i32(a, b, c)),
    VOP3("v_bfi_b32", (a & b) | (~a & c)),
    VOP3("v_alignbit_b32", static_cast<u32>(((u64{a} << 32) | b) >> (c & 31))),
    VOP3("v_alignbyte_b32", static_cast<u32>(((u64{a} << 32) | b) >> (8 * (c & 3)))),
    VOP3("v_min3_i32", min_i(min_i(a, b), c)),
    VOP3("v_max3_i32", max_i(max_i(a, b), c)),
    VOP3("v_med3_i32", max_i(min_i(a, b), min_i(max_i(a, b), c))),
    VOP3("v_min3_u32", min_u(min_u(a, b), c)),
    VOP3("v_max3_u32", max_u(max_u(a, b), c)),
    VOP3("v_med3_u32", max_u(min_u(a, b), min_u(max_u(a, b), c))),
    {"v_perm_b32", kV, 1, {1, 1, 1}, kNoTraits, permute_rows},
    {"v_mbcnt_lo_u32_b32", kV, 1, {1, 1, 0}, kNoTraits, mask_count<false>},
    {"v_mbcnt_hi_u32_b32", kV, 1, {1, 1, 0}, kNoTraits, mask_count<true>},
    {"v_cndmask_b32", kV, 1, {1, 1, 2}, kMods | kCarryIn, conditional_mask},
    {"v_add_co_u32", kV, 1, {1, 1, 0}, kCarryOut | kClamp, carry<false, false, false>},
    {"v_sub_co_u32", kV, 1, {1, 1, 0}, kCarryOut | kClamp, carry<true, false, false>},
    {"v_subrev_co_u32", kV, 1, {1, 1, 0}, kCarryOut | kClamp, carry<true, true, false>},
    {"v_addc_co_u32", kV, 1, {1, 1, 2}, kCarryOut | kCarryIn | kClamp, carry<false, false, true>},
    {"v_subb_co_u32", kV, 1, {1, 1, 2}, kCarryOut | kCarryIn | kClamp, carry<true, false, true>},
    {"v_subbrev_co_u32", kV, 1, {1, 1, 2}, kCarryOut | kCarryIn | kClamp, carry<true, true, true>},
    {"v_mad_u64_u32", kV, 2, {1, 1, 2}, kCarryOut | kClamp, mad_64<false>,
     {Type::kWord, Type::kWord, Type::kUnsigned64}},
    {"v_mad_i64_i32", kV, 2, {1, 1, 2}, kCarryOut | kClamp, mad_64<true>,
     {Type::kWord, Type::kWord, Type::kSigned64}},
    {"v_swap_b32", kV, 1, {1, 0, 0}, kSwaps, swap},
    WIDE2("v_lshlrev_b64", 1, 2, b << (a & 63)),
    WIDE2("v_lshrrev_b64", 1, 2, b >> (a & 63)),
    WIDE2("v_ashrrev_i64", 1, 2, static_cast<u64>(static_cast<i64>(b) >> (a & 63))),
    {"v_mov_b64", kV, 2, {2, 0, 0}, kNoTraits, wide_move, {Type::kUnsigned64}},
    {"v_lshl_add_u64", kV, 2, {2, 1, 2}, kNoTraits,
     wide<3, [](u64 a, u64 b, u64 c) -> u64 { return (a << (b & 7)) + c; }>},
    {"v_accvgpr_read_b32", kV, 1, {1, 0, 0}, kAccSource, unary<[](u32 a) { return a; }>},
    {"v_accvgpr_write_b32", kV, 1, {1, 0, 0}, kAccDst, unary<[](u32 a) { return a; }>},
    {"v_accvgpr_mov_b32", kV, 1, {1, 0, 0}, kAccSource | kAccDst, unary<[](u32 a) { return a; }>},
    {"v_readlane_b32", Shape::kReadLane, 1, {1, 1, 0}, kNoTraits, read_lane},
    {"v_readfirstlane_b32", Shape::kReadLane, 1, {1, 0, 0}, kNoTraits, read_first_lane},
    {"v_writelane_b32", Shape::kWriteLane, 1, {1, 1, 0}, kNoTraits, write_lane},
};

}  // namespace

std::span<const Operation> ASMEVO_TABLE(integer_operations)() { return kTable; }

}  // namespace asmevo
