// VOP3P operations on two 16-bit integers.
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

// Elements in i64; `Signed` says how sources and the saturated result read.
template <std::size_t Sources, bool Signed, auto F>
void packed(Wave& w, const Step& s) {
  const u32* rows[3] = {};
  u32 shift[3][2] = {};
  for (std::size_t k = 0; k < Sources; ++k) {
    rows[k] = w.row(s.src[k], k);
    shift[k][0] = (s.op_sel >> k) & 1 ? 16 : 0;
    shift[k][1] = (s.op_sel_hi >> k) & 1 ? 16 : 0;
  }
  const bool clamp = (s.flags & kFlagClamp) != 0;
  constexpr i64 kLow = Signed ? -0x8000 : 0, kHigh = Signed ? 0x7fff : 0xffff;
  u32* out = w.begin_write(s.dst);
  for (std::size_t i = 0; i < kLanes; ++i) {
    u32 result[2];
    for (std::size_t h = 0; h < 2; ++h) {
      const auto element = [&](std::size_t k) -> i64 {
        const u32 x = rows[k][i] >> shift[k][h];
        if constexpr (Signed) return static_cast<std::int16_t>(x);
        return x & 0xffffu;
      };
      i64 r;
      if constexpr (Sources == 2) {
        r = F(element(0), element(1));
      } else {
        r = F(element(0), element(1), element(2));
      }
      if (clamp) r = r < kLow ? kLow : r > kHigh ? kHigh : r;
      result[h] = static_cast<u32>(r) & 0xffffu;
    }
    out[i] = result[0] | result[1] << 16;
  }
  w.end_write(s.dst);
}

constexpr Type kP = Type::kPair;
#define PACKED2(name, is_signed, ...) \
  {name, Shape::kVector, 1, {1, 1, 0}, kPacked | kClamp, \
   packed<2, is_signed, [](i64 a, i64 b) -> i64 { return (__VA_ARGS__); }>, {kP, kP}}
#define PACKED3(name, is_signed, ...) \
  {name, Shape::kVector, 1, {1, 1, 1}, kPacked | kClamp, \
   packed<3, is_signed, [](i64 a, i64 b, i64 c) -> i64 { return (__VA_ARGS__); }>, {kP, kP, kP}}

constexpr Operation kTable[] = {
    PACKED2("v_pk_add_u16", false, a + b),
    PACKED2("v_pk_sub_u16", false, a - b),
    PACKED2("v_pk_mul_lo_u16", false, a * b),
    PACKED2("v_pk_max_u16", false, a > b ? a : b),
    PACKED2("v_pk_min_u16", false, a < b ? a : b),
    PACKED2("v_pk_add_i16", true, a + b),
    PACKED2("v_pk_sub_i16", true, a - b),
    PACKED2("v_pk_max_i16", true, a > b ? a : b),
    PACKED2("v_pk_min_i16", true, a < b ? a : b),
    PACKED2("v_pk_lshlrev_b16", false, (b << (a & 15)) & 0xffff),
    PACKED2("v_pk_lshrrev_b16", false, b >> (a & 15)),
    PACKED2("v_pk_ashrrev_i16", true, b >> (a & 15)),
    PACKED3("v_pk_mad_u16", false, a * b + c),
    PACKED3("v_pk_mad_i16", true, a * b + c),
};

}  // namespace

std::span<const Operation> packed_operations() { return kTable; }

}  // namespace asmevo
