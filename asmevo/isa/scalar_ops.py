"""Scalar operations (CDNA2 to CDNA4 ISA, "Scalar ALU Operations", "Program Control")."""

from __future__ import annotations

from asmevo.isa.form import Form
from asmevo.isa.instruction import Unit
from asmevo.isa.registers import (
    EXEC_MASK,
    FLAT_SCRATCH_LO,
    M0_MASK,
    MODE_MASK,
    SCC_MASK,
    VCC_MASK,
    mask,
)

_FLAT_SCRATCH = mask(FLAT_SCRATCH_LO, 2)

# (roles, implicit reads, implicit writes, operations)
_SALU = (
    ("wrr", 0, SCC_MASK, """
        s_add_u32 s_sub_u32 s_add_i32 s_sub_i32 s_min_i32 s_min_u32 s_max_i32 s_max_u32
        s_and_b32 s_and_b64 s_or_b32 s_or_b64 s_xor_b32 s_xor_b64 s_andn2_b32 s_andn2_b64
        s_orn2_b32 s_orn2_b64 s_nand_b32 s_nand_b64 s_nor_b32 s_nor_b64 s_xnor_b32 s_xnor_b64
        s_lshl_b32 s_lshl_b64 s_lshr_b32 s_lshr_b64 s_ashr_i32 s_ashr_i64
        s_bfe_u32 s_bfe_i32 s_bfe_u64 s_bfe_i64 s_absdiff_i32
        s_lshl1_add_u32 s_lshl2_add_u32 s_lshl3_add_u32 s_lshl4_add_u32"""),
    ("wrr", SCC_MASK, SCC_MASK, "s_addc_u32 s_subb_u32"),
    ("wrr", SCC_MASK, 0, "s_cselect_b32 s_cselect_b64"),
    ("wrr", 0, 0, """
        s_bfm_b32 s_bfm_b64 s_mul_i32 s_mul_hi_u32 s_mul_hi_i32
        s_pack_ll_b32_b16 s_pack_lh_b32_b16 s_pack_hh_b32_b16"""),
    ("wr", 0, 0, """
        s_mov_b32 s_mov_b64 s_brev_b32 s_brev_b64 s_ff0_i32_b32 s_ff0_i32_b64 s_ff1_i32_b32
        s_ff1_i32_b64 s_flbit_i32_b32 s_flbit_i32_b64 s_flbit_i32 s_flbit_i32_i64
        s_sext_i32_i8 s_sext_i32_i16 s_bitreplicate_b64_b32"""),
    ("wr", 0, SCC_MASK, """
        s_not_b32 s_not_b64 s_wqm_b32 s_wqm_b64 s_bcnt0_i32_b32 s_bcnt0_i32_b64 s_bcnt1_i32_b32
        s_bcnt1_i32_b64 s_quadmask_b32 s_quadmask_b64 s_abs_i32"""),
    ("xr", SCC_MASK, 0, "s_cmov_b32 s_cmov_b64"),
    ("xr", 0, 0, "s_bitset0_b32 s_bitset0_b64 s_bitset1_b32 s_bitset1_b64"),
    ("wr", EXEC_MASK, EXEC_MASK | SCC_MASK, """
        s_and_saveexec_b64 s_or_saveexec_b64 s_xor_saveexec_b64 s_andn2_saveexec_b64
        s_orn2_saveexec_b64 s_nand_saveexec_b64 s_nor_saveexec_b64 s_xnor_saveexec_b64
        s_andn1_saveexec_b64 s_orn1_saveexec_b64 s_andn1_wrexec_b64 s_andn2_wrexec_b64"""),
    ("rr", 0, SCC_MASK, """
        s_cmp_eq_i32 s_cmp_lg_i32 s_cmp_gt_i32 s_cmp_ge_i32 s_cmp_lt_i32 s_cmp_le_i32
        s_cmp_eq_u32 s_cmp_lg_u32 s_cmp_gt_u32 s_cmp_ge_u32 s_cmp_lt_u32 s_cmp_le_u32
        s_cmp_eq_u64 s_cmp_lg_u64 s_bitcmp0_b32 s_bitcmp0_b64 s_bitcmp1_b32 s_bitcmp1_b64"""),
    ("ri", 0, SCC_MASK, """
        s_cmpk_eq_i32 s_cmpk_lg_i32 s_cmpk_gt_i32 s_cmpk_ge_i32 s_cmpk_lt_i32 s_cmpk_le_i32
        s_cmpk_eq_u32 s_cmpk_lg_u32 s_cmpk_gt_u32 s_cmpk_ge_u32 s_cmpk_lt_u32 s_cmpk_le_u32"""),
    ("wi", 0, 0, "s_movk_i32"),
    ("xi", SCC_MASK, 0, "s_cmovk_i32"),
    ("xi", 0, SCC_MASK, "s_addk_i32"),
    ("xi", 0, 0, "s_mulk_i32"),
    ("w", 0, 0, "s_getpc_b64"),
    ("wi", MODE_MASK, 0, "s_getreg_b32"),
    ("ir", MODE_MASK, MODE_MASK, "s_setreg_b32"),
    ("ii", MODE_MASK, MODE_MASK, "s_setreg_imm32_b32"),
    # VGPR indexing: the index lives in M0[7:0], its mode in M0[15:12], the enable bit in MODE.
    ("ri", MODE_MASK, M0_MASK | MODE_MASK, "s_set_gpr_idx_on"),
    ("", MODE_MASK, MODE_MASK, "s_set_gpr_idx_off"),
    ("i", M0_MASK, M0_MASK | MODE_MASK, "s_set_gpr_idx_mode"),
    ("r", M0_MASK, M0_MASK, "s_set_gpr_idx_idx"),
    ("rr", MODE_MASK, MODE_MASK, "s_setvskip"),
)

_BRANCHES = (
    ("t", 0, False, "s_branch"),
    ("t", SCC_MASK, True, "s_cbranch_scc0 s_cbranch_scc1"),
    ("t", VCC_MASK, True, "s_cbranch_vccz s_cbranch_vccnz"),
    ("t", EXEC_MASK, True, "s_cbranch_execz s_cbranch_execnz"),
    # Taken when a debugger has set a flag in the wave's state.
    ("t", 0, True, """
        s_cbranch_cdbgsys s_cbranch_cdbguser s_cbranch_cdbgsys_or_user
        s_cbranch_cdbgsys_and_user"""),
    ("r", 0, False, "s_setpc_b64"),
    ("wr", 0, False, "s_swappc_b64"),
    ("wt", 0, False, "s_call_b64"),
)

_LOADS = """
    s_load_dword s_load_dwordx2 s_load_dwordx4 s_load_dwordx8 s_load_dwordx16
    s_buffer_load_dword s_buffer_load_dwordx2 s_buffer_load_dwordx4 s_buffer_load_dwordx8
    s_buffer_load_dwordx16"""
_STORES = """
    s_store_dword s_store_dwordx2 s_store_dwordx4
    s_buffer_store_dword s_buffer_store_dwordx2 s_buffer_store_dwordx4"""
_ATOMICS = "swap cmpswap add sub smin umin smax umax and or xor inc dec"


def _table() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    for roles, reads, writes, ops in _SALU:
        for op in ops.split():
            forms[op] = Form(Unit.SALU, roles, reads, writes)
    for roles, reads, conditional, ops in _BRANCHES:
        for op in ops.split():
            forms[op] = Form(Unit.BRANCH, roles, reads, is_branch=True, is_conditional=conditional)

    for op in _LOADS.split():
        # A multi-dword return raises lgkmcnt by two (CDNA3 ISA, "Manually Inserted Wait States").
        count = 1 if op.endswith("_dword") else 2
        forms[op] = Form(Unit.SMEM, "wrr", is_load=True, lgkmcnt=count)
    for op in _STORES.split():
        count = 1 if op.endswith("_dword") else 2
        forms[op] = Form(Unit.SMEM, "rrr", is_store=True, lgkmcnt=count)
    for width in ("", "x2", "x4"):
        count = 1 if not width else 2
        forms[f"s_scratch_load_dword{width}"] = Form(
            Unit.SMEM, "wrr", _FLAT_SCRATCH, is_load=True, lgkmcnt=count)
        forms[f"s_scratch_store_dword{width}"] = Form(
            Unit.SMEM, "rrr", _FLAT_SCRATCH, is_store=True, lgkmcnt=count)
    for prefix in ("s_atomic_", "s_buffer_atomic_"):
        for suffix in ("", "_x2"):
            for name in _ATOMICS.split():
                forms[prefix + name + suffix] = Form(
                    Unit.SMEM, "rrr", is_atomic=True, lgkmcnt=2 if suffix else 1,
                    returning_roles="xrr")
    for op in ("s_memtime", "s_memrealtime"):
        forms[op] = Form(Unit.SMEM, "w", is_load=True, lgkmcnt=2)
    for op in ("s_dcache_inv", "s_dcache_inv_vol", "s_dcache_wb", "s_dcache_wb_vol"):
        forms[op] = Form(Unit.SMEM, "", lgkmcnt=1)

    forms["s_waitcnt"] = Form(Unit.WAIT, "i")
    forms["s_nop"] = Form(Unit.NOP, "i")
    forms["s_barrier"] = Form(Unit.BARRIER, "")
    for op in ("s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"):
        forms[op] = Form(Unit.END, "", ends_program=True)
    for op in ("s_sendmsg", "s_sendmsghalt"):
        forms[op] = Form(Unit.MESSAGE, "i", M0_MASK, lgkmcnt=1)
    for op in ("s_sleep", "s_setprio", "s_sethalt", "s_setkill", "s_trap", "s_incperflevel",
               "s_decperflevel"):
        forms[op] = Form(Unit.MESSAGE, "i")
    for op in ("s_icache_inv", "s_wakeup"):
        forms[op] = Form(Unit.MESSAGE, "")
    forms["s_ttracedata"] = Form(Unit.MESSAGE, "", M0_MASK)
    return forms


SCALAR_FORMS = _table()
