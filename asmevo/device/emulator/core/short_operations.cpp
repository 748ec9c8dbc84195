// 16-bit integer VALU operations. With clamp results saturate (CDNA3 ISA, "ALU Clamp Bit Usage").
#include "typed_lanes.hpp"

namespace asmevo {

namespace {

template <class T>
T least(T a, T b) { return a < b ? a : b; }
template <class T>
T most(T a, T b) { return a > b ? a : b; }
template <class T>
T least3(T a, T b, T c) { return least(least(a, b), c); }
template <class T>
T most3(T a, T b, T c) { return most(most(a, b), c); }
template <class T>
T median(T a, T b, T c) { return most(least(a, b), least(most(a, b), c)); }

// Sums in i64, wide enough to see that they leave 16 bits.
i64 add(i64 a, i64 b) { return a + b; }
i64 subtract(i64 a, i64 b) { return a - b; }
i64 subtract_reversed(i64 a, i64 b) { return b - a; }
i64 multiply(i64 a, i64 b) { return a * b; }
i64 multiply_add(i64 a, i64 b, i64 c) { return a * b + c; }

using UU = U16(U16, U16);
using II = I16(I16, I16);
using UUU = U16(U16, U16, U16);
using III = I16(I16, I16, I16);
constexpr HighHalf kKeep = HighHalf::kKeep;

constexpr Operation kTable[] = {
    lane_operation<UU, add>("v_add_u16", kClamp),
    lane_operation<UU, subtract>("v_sub_u16", kClamp),
    lane_operation<UU, subtract_reversed>("v_subrev_u16", kClamp),
    lane_operation<UU, multiply>("v_mul_lo_u16"),
    lane_operation<II, add>("v_add_i16", kClamp | kOpSel),
    lane_operation<II, subtract>("v_sub_i16", kClamp | kOpSel),
    lane_operation<UU, most<u32>>("v_max_u16"),
    lane_operation<UU, least<u32>>("v_min_u16"),
    lane_operation<II, most<i32>>("v_max_i16"),
    lane_operation<II, least<i32>>("v_min_i16"),
    lane_operation<UU, [](u32 a, u32 b) { return b << (a & 15); }>("v_lshlrev_b16"),
    lane_operation<UU, [](u32 a, u32 b) { return (b >> (a & 15)); }>("v_lshrrev_b16"),
    lane_operation<I16(U16, I16), [](u32 a, i32 b) { return (b >> (a & 15)); }>("v_ashrrev_i16"),
    lane_operation<UUU, most3<u32>>("v_max3_u16", kClamp | kOpSel),
    lane_operation<UUU, least3<u32>>("v_min3_u16", kClamp | kOpSel),
    lane_operation<UUU, median<u32>>("v_med3_u16", kClamp | kOpSel),
    lane_operation<III, most3<i32>>("v_max3_i16", kClamp | kOpSel),
    lane_operation<III, least3<i32>>("v_min3_i16", kClamp | kOpSel),
    lane_operation<III, median<i32>>("v_med3_i16", kClamp | kOpSel),
    lane_operation<UUU, multiply_add, kKeep>("v_mad_u16", kClamp | kOpSel),
    lane_operation<III, multiply_add, kKeep>("v_mad_i16", kClamp | kOpSel),
    lane_operation<UUU, multiply_add>("v_mad_legacy_u16", kClamp),
    lane_operation<III, multiply_add>("v_mad_legacy_i16", kClamp),
    lane_operation<U32(U16, U16, U32), multiply_add>("v_mad_u32_u16", kClamp | kOpSel),
    lane_operation<I32(I16, I16, I32), multiply_add>("v_mad_i32_i16", kClamp | kOpSel),
};

}  // namespace

std::span<const Operation> short_operations() { return kTable; }

}  // namespace asmevo
