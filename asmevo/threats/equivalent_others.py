"""Controls that must pass: rewrites of softmax with top-k, matrix products, and atomics."""

from __future__ import annotations

from asmevo.threats.equivalent import equal, swapped
from asmevo.threats.trick import Rewritten, before, edited, inserted, removed, renamed, replaced

TK, GEMM, I8, FMOE, SUM = "topksoftmax", "gemm", "i8gemm", "fmoe", "scaled_sum"

THREATS = (
    equal("a nop that a hazard does not need is left out", TK, edited(removed("s_nop 0"))),
    equal("a nop becomes two", TK, edited(replaced("s_nop 1", "s_nop 0", "s_nop 0"))),
    equal("work takes the place of a nop", TK, edited(
        removed("s_mov_b32 s22, s28"), replaced("s_nop 0", "v_mov_b32_e32 v18, 0"),
        before("s_cmp_eq_u32 s28, -1", "s_mov_b32 s22, s28"))),
    equal("a product with a power of two becomes a shift", TK, edited(
        replaced("s_mul_i32 s32, 64, s32", "s_lshl_b32 s32, s32, 6"),
        replaced("s_mul_i32 s20, s20, 4", "s_lshl_b32 s20, s20, 2"))),
    equal("scans of a mask change places", TK, swapped("s_ff1_i32_b64 s28")),
    equal("comparisons change places", TK, swapped("v_cmp_eq_f32_e64 s[24:25]")),
    equal("a lane's index has another register", TK, Rewritten(renamed({"s22": "s60"}))),
    equal("loads are non-temporal", TK, Rewritten(
        lambda line: f"{line} nt" if line.startswith("buffer_load_dword v1") else line)),
    equal("a register is cleared once", TK, edited(
        removed("v_mov_b32_e32 v16, 0"), removed("v_mov_b32_e32 v17, 0"))),
    equal("VOP3 becomes VOP2", TK, edited(
        replaced("v_mul_f32_e64 v11, v11, s49", "v_mul_f32_e32 v11, s49, v11"))),
    equal("accumulators are cleared in pairs", GEMM, edited(*(
        replaced(f"v_mov_b32_e32 v{i}, 0", f"v_pk_mov_b32 v[{i}:{i + 1}], 0, 0", drop=2)
        for i in range(224, 256, 2)))),
    equal("LDS reads before a matrix product are paired", GEMM, edited(
        replaced("ds_read_b32 v20, v4", "ds_read2_b32 v[20:21], v4 offset1:1",
                 "s_nop 0", drop=2))),
    equal("address arithmetic moves behind a barrier", GEMM, edited(
        removed("s_mov_b32 s92, 0x208"), before("s_cmp_lt_i32 s28, s29", "s_mov_b32 s92, 0x208"))),
    equal("a shift by nothing is a move", GEMM, edited(
        replaced("s_lshr_b32 s33, s45, 0", "s_mov_b32 s33, s45"))),
    equal("a wait before a matrix product is stricter", GEMM, edited(
        replaced("s_waitcnt lgkmcnt(14)", "s_waitcnt lgkmcnt(12)"))),
    equal("a nop at the entry", I8, inserted("s_nop 0")),
    equal("scalar loads change places", I8, swapped("s_load_dwordx2", nth=1)),
    equal("a nop at the entry", FMOE, inserted("s_nop 0")),
    equal("scalar loads change places", FMOE, swapped("s_load_dwordx2", nth=1)),
    equal("moves of a register to itself are left out", FMOE, edited(
        removed("s_mov_b32 s2, s2"), removed("s_mov_b32 s3, s3"), removed("s_mov_b32 s4, s4"))),
    equal("a product with a power of two becomes a shift", FMOE, edited(
        replaced("s_mul_i32 s61, s66, 4", "s_lshl_b32 s61, s66, 2"))),
    equal("an addition in front of a branch", SUM, edited(
        removed("v_lshlrev_b32_e32 v2, 2, v1"),
        before("s_and_saveexec_b64", "v_lshlrev_b32_e32 v2, 2, v1"))),
    equal("a product and an addition in one", SUM, edited(replaced(
        "v_mul_f32_e32 v4, s11, v3", "v_fma_f32 v4, v3, s11, 1.0", drop=2))),
    equal("no jump over a stretch without lanes", SUM, edited(removed("s_cbranch_execz"))),
    equal("a register of a stretch that nothing jumps over was another's in front", SUM, edited(
        removed("s_cbranch_execz"),
        replaced("v_cmp_gt_u32_e32 vcc", "v_mov_b32_e32 v2, v1", "v_cmp_gt_u32_e32 vcc, s10, v2"))),
    equal("another jump over what needs lanes", SUM, edited(
        replaced("global_store_dword v2", "s_cbranch_execz .Lidle",
                 "global_store_dword v2, v4, s[4:5] sc0 sc1", ".Lidle:"))),
    equal("an atomic's address is made while its store is under way", SUM, edited(
        removed("v_and_b32_e32 v5, 15, v1"), removed("v_lshlrev_b32_e32 v5, 2, v5"),
        before("global_atomic_add_f32", "v_and_b32_e32 v5, 15, v1",
               "v_lshlrev_b32_e32 v5, 2, v5"))),
)
