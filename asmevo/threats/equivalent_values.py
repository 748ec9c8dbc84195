"""Controls that must pass: the same values, made in other ways."""

from __future__ import annotations

from asmevo.threats.equivalent import equal
from asmevo.threats.trick import before, edited, removed, replaced

LN, I8, FMOE, SUM = "layer_norm", "i8gemm", "fmoe", "scaled_sum"

# Loads of the kernarg.
_LOADS = (
    equal("two scalar loads become one", LN, edited(
        replaced("s_load_dwordx2 s[16:17]", "s_load_dwordx8 s[60:67], s[0:1], 0x10", drop=2),
        before("s_mov_b32 s18, 0x80000000", "s_mov_b64 s[16:17], s[60:61]",
               "s_mov_b64 s[20:21], s[64:65]"))),
    equal("one scalar load becomes two", SUM, edited(
        replaced("s_load_dwordx4 s[4:7]", "s_load_dwordx2 s[4:5], s[0:1], 0x0",
                 "s_load_dwordx2 s[6:7], s[0:1], 0x8"))),
    equal("one scalar load for all", SUM, edited(
        replaced("s_load_dwordx4 s[4:7]", "s_load_dwordx8 s[4:11], s[0:1], 0x0", drop=2))),
    equal("scalar loads of a table become one", FMOE, edited(
        removed("s_load_dword s89, s[44:45], 0x70"),
        before("v_lshlrev_b32_e32 v56, 2, v0", "s_load_dwordx2 s[96:97], s[44:45], 0x70",
               "s_waitcnt lgkmcnt(0)", "s_mov_b32 s89, s96"))),
)
# Bits.
_BITS = (
    equal("a field instead of a mask", LN, edited(
        replaced("v_and_b32_e32 v0, 0x3ff", "v_bfe_u32 v0, v0, 0, 10"))),
    equal("a mask of loaded numbers as a field", FMOE, edited(
        replaced("v_and_b32_e32 v7, 0xffffff, v7", "v_bfe_u32 v7, v7, 0, 24"),
        replaced("s_and_b32 s82, s82, 0xffffff", "s_bfe_u32 s82, s82, 0x180000"))),
    equal("a mask as two shifts", FMOE, edited(
        replaced("v_and_b32_e32 v8, 0xffffff, v8", "v_lshlrev_b32_e32 v8, 8, v8",
                 "v_lshrrev_b32_e32 v8, 8, v8"))),
    equal("a bit is set", LN, edited(
        replaced("s_or_b32 s17, s17, 0x40000", "s_bitset1_b32 s17, 18"))),
    equal("halves are packed", LN, edited(
        removed("s_and_b32 s17, s17, 0xffff"),
        replaced("s_or_b32 s17, s17, 0x40000", "s_pack_ll_b32_b16 s17, s17, 4"))),
    equal("a sum of disjoint bits instead of an or", LN, edited(
        replaced("s_or_b32 s37, s37, 0x40000", "s_add_u32 s37, s37, 0x40000"))),
    equal("a product of 24 bits instead of a shift", LN, edited(
        replaced("v_lshlrev_b32_e32 v212, 4, v0", "v_mul_u32_u24_e32 v212, 16, v0"))),
)
# Sums and comparisons.
_SUMS = (
    equal("a difference with the opposite", LN, edited(
        replaced("s_add_i32 s48, s49, s48", "s_sub_i32 s49, 0, s49", "s_sub_i32 s48, s48, s49",
                 "s_sub_i32 s49, 0, s49"))),
    equal("an addition without its carry's sign", LN, edited(
        replaced("s_add_i32 s48, s49, s48", "s_add_u32 s48, s48, s49"))),
    equal("a part of the address in the instruction's scalar", LN, edited(
        replaced("buffer_load_dwordx4 v[52:55], v213",
                 "buffer_load_dwordx4 v[52:55], v212, s[16:19], s49 offen"))),
    equal("an opposite comparison of a counter", LN, edited(
        replaced("s_cmp_eq_u32 s53, 1", "s_cmp_lg_u32 s53, 0"))),
    equal("a bit of a counter", LN, edited(
        replaced("s_cmp_eq_u32 s53, 1", "s_bitcmp1_b32 s53, 0"))),
    equal("an address in 64 bits", SUM, edited(
        replaced("global_load_dword v3, v2, s[6:7] sc1", "v_mov_b32_e32 v6, v2",
                 "v_mov_b32_e32 v7, 0", "v_lshl_add_u64 v[6:7], v[6:7], 0, s[6:7]",
                 "global_load_dword v3, v[6:7], off sc1"))),
    equal("an address with a carry", SUM, edited(
        replaced("global_load_dword v3, v2, s[6:7] sc1", "v_mov_b32_e32 v7, s7",
                 "v_add_co_u32_e32 v6, vcc, s6, v2", "s_nop 1",
                 "v_addc_co_u32_e32 v7, vcc, 0, v7, vcc",
                 "global_load_dword v3, v[6:7], off sc1"))),
)
# Loops whose number of turns an argument decides.
_LOOPS = (
    equal("a comparison of the loop's bound is turned", I8, edited(
        replaced("s_cmp_lt_i32 s28, s29", "s_cmp_gt_i32 s29, s28", nth=2))),
    equal("a barrier more", LN, edited(
        replaced("s_barrier", "s_barrier", "s_barrier"))),
)

THREATS = (*_LOADS, *_BITS, *_SUMS, *_LOOPS)
