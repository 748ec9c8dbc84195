"""Wait states: every rule by hand, distances over paths, production kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.cfg import Cfg
from asmevo.isa.hazard_rules import rules
from asmevo.isa.hazards import hazards, requirements, smallest_nop, smallest_nops
from asmevo.isa.program import Program
from asmevo.isa.violation import Violation

Write = Callable[..., Program]

_MFMA16 = "v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[4:7]"
_MFMA32 = "v_mfma_f32_32x32x8_f16 v[16:31], v[8:9], v[10:11], v[32:47]"
_F32 = "v_mfma_f32_16x16x4_f32 v[0:3], v8, v9, v[4:7]"
_F64 = "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[12:19]"
_F64_SMALL = "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[8:9], v[10:11], v[12:13]"

# (rule, producer, consumer, wait states): the gfx942 column of the CDNA3 ISA document's table.
RULE_CASES = [
    ("valu-sgpr-vmem", "v_readfirstlane_b32 s0, v0", "global_load_dword v1, v2, s[0:1]", 5),
    ("valu-sgpr-vmem", "v_cmp_eq_u32_e32 vcc, 0, v0",
     "buffer_load_dword v1, v2, s[4:7], vcc_lo offen", 5),
    ("valu-sgpr-constant", "v_readlane_b32 s0, v0, 1", "v_add_u32_e32 v1, s0, v1", 2),
    ("valu-sgpr-constant", "v_cmp_eq_u32_e32 vcc, 0, v0", "v_mov_b32_e32 v1, vcc_lo", 2),
    ("valu-lane-select", "v_readfirstlane_b32 s0, v0", "v_readlane_b32 s1, v1, s0", 4),
    ("valu-lane-select", "v_readfirstlane_b32 s0, v0", "v_writelane_b32 v1, s2, s0", 4),
    ("valu-vcc-div-fmas", "v_div_scale_f32 v0, vcc, v1, v2, v3",
     "v_div_fmas_f32 v4, v5, v6, v7", 4),
    ("valu-zero-flag", "v_cmp_eq_u32_e32 vcc, 0, v0", "v_mov_b32_e32 v1, src_vccz", 5),
    ("valu-readlane", "v_mov_b32_e32 v0, 0", "v_readlane_b32 s0, v0, 1", 1),
    ("valu-readlane", "v_mov_b32_e32 v0, 0", "v_readfirstlane_b32 s0, v0", 1),
    ("cmpx-lane", "v_cmpx_eq_u32_e32 vcc, 0, v0", "v_readlane_b32 s0, v1, 1", 4),
    ("cmpx-exec-constant", "v_cmpx_eq_u32_e32 vcc, 0, v0", "v_mov_b32_e32 v1, exec_lo", 2),
    ("valu-dpp", "v_mov_b32_e32 v0, 0",
     "v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf", 2),
    ("exec-dpp", "v_cmpx_eq_u32_e32 vcc, 0, v0",
     "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf", 5),
    ("exec-mfma", "v_cmpx_eq_u32_e32 vcc, 0, v50", _MFMA16, 4),
    ("trans-valu", "v_exp_f32_e32 v0, v1", "v_add_f32_e32 v2, v0, v3", 1),
    ("shifted-valu", "v_cvt_f16_f32_sdwa v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PAD "
     "src0_sel:DWORD", "v_add_u32_e32 v2, v0, v3", 1),
    ("shifted-valu", "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", "v_mov_b32_e32 v2, v0", 1),
    ("setreg-getreg", "s_setreg_b32 hwreg(HW_REG_MODE), s0",
     "s_getreg_b32 s1, hwreg(HW_REG_MODE)", 2),
    ("salu-m0", "s_mov_b32 m0, s0", "buffer_load_dword v0, s[4:7], 0 offen lds", 1),
    ("salu-m0", "s_mov_b32 m0, s0", "s_sendmsg sendmsg(MSG_INTERRUPT)", 1),
    ("store-data", "buffer_store_dwordx4 v[0:3], v4, s[4:7], 0 offen", "v_mov_b32_e32 v2, 0", 2),
    ("store-data", "global_store_dwordx3 v[4:5], v[0:2], off", "v_mov_b32_e32 v2, 0", 2),
    ("vskip", "s_setvskip s0, 0", "ds_read_b32 v0, v1", 2),
    ("dot-result", "v_dot2_f32_f16 v0, v1, v2, v3", "v_add_f32_e32 v4, v0, v5", 3),
    ("dot-result", "v_dot2_f32_f16 v0, v1, v2, v3", "v_dot2_f32_f16 v4, v0, v5, v6", 3),
    ("valu-mfma", "v_mov_b32_e32 v8, 0", _MFMA16, 2),
    ("valu-mfma", "v_accvgpr_write_b32 a0, v0",
     "v_mfma_f32_16x16x16_f16 a[0:3], v[8:9], v[10:11], a[0:3]", 2),
    ("xdl-c", _MFMA16, "v_mfma_f32_16x16x16_f16 v[48:51], v[8:9], v[10:11], v[2:5]", 5),
    ("xdl-c", _MFMA32, "v_mfma_f32_16x16x16_f16 v[48:51], v[8:9], v[10:11], v[16:19]", 9),
    ("xdl-result", _MFMA16, "v_mfma_f32_16x16x16_f16 v[48:51], v[0:1], v[10:11], 0", 7),
    ("xdl-result", _MFMA16, "v_add_f32_e32 v50, v3, v51", 7),
    ("xdl-result", _MFMA16, "v_mov_b32_e32 v3, 0", 7),
    ("xdl-result", _MFMA32, "global_store_dword v[4:5], v16, off", 11),
    ("xdl-result", _MFMA16, "ds_write_b32 v50, v0", 7),
    ("xdl-c-overwritten", _MFMA16, "v_mov_b32_e32 v4, 0", 3),
    ("xdl-c-overwritten", _MFMA32, "v_mov_b32_e32 v47, 0", 7),
    ("f32-c", _F32, "v_mfma_f32_16x16x4_f32 v[48:51], v8, v9, v[1:4]", 8),
    ("f32-result", _F32, "v_mov_b32_e32 v50, v0", 10),
    ("f64-4x4-c", _F64_SMALL, "v_mfma_f64_4x4x4_4b_f64 v[20:21], v[8:9], v[10:11], v[0:1]", 4),
    ("f64-4x4-result", _F64_SMALL, "v_mov_b32_e32 v50, v0", 6),
    ("f64-4x4-memory", _F64_SMALL, "ds_write_b32 v50, v0", 9),
    ("f64-16x16-c", _F64, "v_mfma_f64_16x16x4_f64 v[20:27], v[8:9], v[10:11], v[2:9]", 9),
    ("f64-16x16-result", _F64, "v_mov_b32_e32 v50, v0", 11),
    ("f64-16x16-memory", _F64, "ds_write_b32 v50, v0", 18),
    ("f64-mfma-fma", _F64_SMALL, "v_fma_f64 v[20:21], v[22:23], v[24:25], v[26:27]", 2),
]


# gfx950 where it differs: XDL results take one wait state more, f64 ones of 16 passes eight.
_MFMA128 = "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[4:7]"
_NARROW128 = "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:11], v[16:19], v[4:7] cbsz:4 blgp:4"
_MFMA4 = "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[8:9], v[10:11], v[4:7]"
GFX950_CASES = [
    ("valu-permlane", "v_mov_b32_e32 v0, 0", "v_permlane16_swap_b32_e32 v1, v0", 2),
    ("cmpx-permlane", "v_cmpx_eq_u32_e32 vcc, 0, v0", "v_permlane32_swap_b32_e32 v1, v2", 4),
    ("shifted-valu", "v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 op_sel:[0,0,0,1]",
     "v_mov_b32_e32 v2, v0", 1),
    ("shifted-valu", "v_cvt_scalef32_sr_fp8_f32 v0, v1, v2, v3 op_sel:[0,0,1,0]",
     "v_mov_b32_e32 v2, v0", 1),
    ("xdl-c", _MFMA4, "v_mfma_f32_4x4x4_16b_f16 v[48:51], v[8:9], v[10:11], v[2:5]", 4),
    ("xdl-c", _MFMA4, "v_mfma_f32_16x16x4_f32 v[48:51], v8, v9, v[2:5]", 3),
    ("xdl-c", _MFMA16, "v_mfma_f32_16x16x16_f16 v[48:51], v[8:9], v[10:11], v[2:5]", 6),
    ("xdl-result", _MFMA4, "v_add_f32_e32 v50, v3, v51", 5),
    ("xdl-result", _MFMA16, "v_add_f32_e32 v50, v3, v51", 8),
    ("xdl-result", _MFMA32, "global_store_dword v[4:5], v16, off", 12),
    ("xdl-result", _MFMA128, "v_add_f32_e32 v50, v3, v51", 12),
    ("xdl-result", _NARROW128, "v_add_f32_e32 v50, v3, v51", 8),
    ("xdl-result", _MFMA16, "v_mfma_scale_f32_16x16x128_f8f6f4 v[60:63], v[8:11], v[16:19], "
     "v[60:63], v3, v40 op_sel_hi:[0,0,0] cbsz:4 blgp:4", 8),
    ("f64-16x16-c", _F64, "v_mfma_f64_16x16x4_f64 v[20:27], v[8:9], v[10:11], v[2:9]", 17),
    ("f64-16x16-result", _F64, "v_mov_b32_e32 v50, v0", 19),
    ("f64-16x16-overwritten", _F64, "v_mov_b32_e32 v0, 0", 11),
    ("f64-16x16-memory", _F64, "ds_write_b32 v50, v0", 18),
]

# The gfx90a column: one row for all matrix operations that are not f64.
_A_MFMA4 = "v_mfma_f32_4x4x4f16 v[0:3], v[8:9], v[10:11], v[4:7]"
_A_MFMA16 = "v_mfma_f32_16x16x16f16 v[0:3], v[8:9], v[10:11], v[4:7]"
_A_MFMA32 = "v_mfma_f32_32x32x2f32 v[16:31], v8, v9, v[32:47]"
_A_F64 = "v_mfma_f64_16x16x4f64 v[0:7], v[8:9], v[10:11], v[12:19]"
_A_F64_SMALL = "v_mfma_f64_4x4x4f64 v[0:1], v[8:9], v[10:11], v[12:13]"
GFX90A_CASES = [
    *(case for case in RULE_CASES if case[0] in (
        "valu-sgpr-vmem", "valu-lane-select", "valu-vcc-div-fmas", "valu-dpp", "exec-dpp",
        "setreg-getreg", "salu-m0", "dot-result")),
    ("exec-mfma", "v_cmpx_eq_u32_e32 vcc, 0, v50", _A_MFMA16, 4),
    ("store-data", "global_store_dwordx3 v[4:5], v[0:2], off", "v_mov_b32_e32 v2, 0", 1),
    ("valu-mfma", "v_mov_b32_e32 v8, 0", _A_MFMA16, 2),
    ("xdl-c", _A_MFMA4, "v_mfma_f32_4x4x4f16 v[48:51], v[8:9], v[10:11], v[2:5]", 2),
    ("xdl-c", _A_MFMA16, "v_mfma_f32_16x16x4f32 v[48:51], v8, v9, v[2:5]", 8),
    ("xdl-c", _A_MFMA32, "v_mfma_f32_16x16x4f32 v[48:51], v8, v9, v[18:21]", 16),
    ("xdl-c", _A_MFMA16, "v_mfma_f64_16x16x4f64 v[48:55], v[8:9], v[10:11], v[2:9]", 9),
    ("xdl-result", _A_MFMA4, "v_add_f32_e32 v50, v3, v51", 5),
    ("xdl-result", _A_MFMA16, "v_mov_b32_e32 v3, 0", 11),
    ("xdl-result", _A_MFMA32, "ds_write_b32 v50, v16", 19),
    ("xdl-c-overwritten", _A_MFMA4, "v_mov_b32_e32 v4, 0", 1),
    ("xdl-c-overwritten", _A_MFMA16, "v_mov_b32_e32 v4, 0", 7),
    ("xdl-c-overwritten", _A_MFMA32, "v_mov_b32_e32 v47, 0", 15),
    ("f64-4x4-c", _A_F64_SMALL, "v_mfma_f64_4x4x4f64 v[20:21], v[8:9], v[10:11], v[0:1]", 4),
    ("f64-4x4-result", _A_F64_SMALL, "v_mov_b32_e32 v50, v0", 6),
    ("f64-4x4-memory", _A_F64_SMALL, "ds_write_b32 v50, v0", 9),
    ("f64-16x16-c", _A_F64, "v_mfma_f64_16x16x4f64 v[20:27], v[8:9], v[10:11], v[2:9]", 9),
    ("f64-16x16-result", _A_F64, "v_mov_b32_e32 v0, 0", 11),
    ("f64-16x16-memory", _A_F64, "ds_write_b32 v50, v0", 18),
    ("f64-mfma-fma", _A_F64_SMALL, "v_fmac_f64_e32 v[20:21], v[22:23], v[24:25]", 2),
]
ALL_CASES = [*(("gfx942", *case) for case in RULE_CASES),
             *(("gfx950", *case) for case in GFX950_CASES),
             *(("gfx90a", *case) for case in GFX90A_CASES)]


def _found(program: Program) -> Counter[str]:
    return Counter(v.kind for v in hazards(program))


def _nops(states: int) -> str:
    lines = ["s_nop 7"] * (states // 8)
    return "\n".join(lines + ([f"s_nop {states % 8 - 1}"] if states % 8 else []))


@pytest.mark.parametrize(("isa", "kind", "producer", "consumer", "states"), ALL_CASES)
def test_a_rule_holds_up_to_its_distance(
        write: Write, isa: str, kind: str, producer: str, consumer: str, states: int) -> None:
    def found(distance: int) -> tuple[Violation, ...]:
        return hazards(write(f"{producer}\n{_nops(distance)}\n{consumer}\ns_endpgm", isa))

    (violation,) = [v for v in found(states - 1) if v.kind == kind]
    assert (violation.needed, violation.found) == (states, states - 1)
    assert kind not in {v.kind for v in found(states)}


def test_every_rule_has_a_case() -> None:
    gfx942 = {case[0] for case in RULE_CASES}
    gfx950 = {case[0] for case in GFX950_CASES}
    gfx90a = {case[0] for case in GFX90A_CASES}
    assert {rule.kind for rule in rules("gfx942")} == gfx942
    assert {rule.kind for rule in rules("gfx950")} == gfx942 | gfx950
    assert {rule.kind for rule in rules("gfx90a")} == gfx90a | {"valu-f64-mfma-memory"}


def test_gfx90a_forgets_a_wait_behind_an_f64_matrix_operation(write: Write) -> None:
    text = "v_mov_b32_e32 v50, 0\n {}\n ds_write_b32 v51, v50\n s_endpgm"
    assert _found(write(text.format(_A_F64), "gfx90a")) == {"valu-f64-mfma-memory": 1}
    assert _found(write(text.format(f"{_A_F64}\n s_nop 0"), "gfx90a")) == {}
    assert _found(write(text.format("s_nop 0"), "gfx90a")) == {}
    assert _found(write(text.format(_F64))) == {}


@pytest.mark.parametrize("text", [
    "v_readlane_b32 s0, v0, 1\n v_add_u32_e32 v1, s0, v1",
    "v_exp_f32_e32 v0, v1\n v_add_f32_e32 v2, v0, v3",
    "v_mov_b32_e32 v0, 0\n v_readfirstlane_b32 s0, v0",
    f"{_A_MFMA4}\n v_mfma_f32_4x4x4f16 v[0:3], v[8:9], v[10:11], v[0:3]",
    f"{_A_F64}\n v_mfma_f32_16x16x4f32 v[48:51], v8, v9, v[0:3]"])
def test_pairs_that_need_nothing_on_gfx90a(write: Write, text: str) -> None:
    assert hazards(write(f"{text}\n s_endpgm", "gfx90a")) == ()


@pytest.mark.parametrize("text", [
    # Carry chains and selectors use VCC at once (CDNA3 ISA: no wait states).
    "v_add_co_u32_e32 v0, vcc, v1, v2\n v_addc_co_u32_e32 v3, vcc, v4, v5, vcc",
    "v_cmp_eq_u32_e32 vcc, 0, v0\n v_cndmask_b32_e32 v1, v2, v3, vcc",
    "v_cmp_eq_u32_e64 s[0:1], 0, v0\n v_cndmask_b32_e64 v1, v2, v3, s[0:1]",
    "v_exp_f32_e32 v0, v1\n v_log_f32_e32 v2, v0",
    "v_mov_b32_e32 v0, 0\n v_add_f32_e32 v1, v0, v2",
    "s_mov_b32 s0, 0\n v_mov_b32_e32 v1, s0",
    "v_dot2_f32_f16 v0, v1, v2, v3\n v_dot2_f32_f16 v0, v4, v5, v0",
    f"{_MFMA16}\n v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[0:3]",
    "buffer_store_dwordx4 v[0:3], v4, s[4:7], s0 offen\n v_mov_b32_e32 v2, 0",
    "buffer_store_dwordx2 v[0:1], v4, s[4:7], 0 offen\n v_mov_b32_e32 v1, 0",
    "s_setreg_b32 hwreg(HW_REG_MODE), s0\n s_getreg_b32 s1, hwreg(HW_REG_STATUS)",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 5\n v_mov_b32_e32 v0, 0",
    f"{_MFMA16}\n v_mov_b32_e32 v8, 0"])
def test_pairs_that_need_nothing(write: Write, text: str) -> None:
    assert hazards(write(f"{text}\n s_endpgm")) == ()


def test_any_instruction_is_one_wait_state(write: Write) -> None:
    chain = "v_mov_b32_e32 v0, 0\n{}\nv_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf"
    assert _found(write(chain.format("s_mov_b32 s0, 0") + "\ns_endpgm")) == {"valu-dpp": 1}
    assert _found(write(chain.format("s_nop 1") + "\ns_endpgm")) == {}
    assert _found(write(chain.format("s_mov_b32 s0, 0\ns_mov_b32 s1, 0") + "\ns_endpgm")) == {}


def test_a_skipped_instruction_is_no_wait_state(write: Write) -> None:
    program = write("""
        v_mov_b32_e32 v0, 0
        s_setvskip s0, 0
        v_mov_b32_e32 v5, 0
        v_mov_b32_e32 v6, 0
        v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf
        s_endpgm
    """)
    assert [v.found for v in hazards(program) if v.kind == "valu-dpp"] == [1]


def test_the_shortest_path_decides(write: Write) -> None:
    program = write("""
        loop:
        v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf
        s_cbranch_scc1 out
        s_nop 3
        v_mov_b32_e32 v0, 0
        s_cbranch_scc0 loop
        s_nop 1
        out:
        s_endpgm
    """)
    (violation,) = hazards(program)
    assert (violation.producer, violation.consumer, violation.found) == (3, 0, 1)
    assert violation.signature == ("valu-dpp", "v_mov_b32 v0, 0", program.instructions[0].text,
                                   violation.registers)


def test_smallest_nop_by_hand(write: Write) -> None:
    text = "v_mov_b32_e32 v0, 0\n{}\nv_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf"
    assert smallest_nop(write(text.format("s_nop 7") + "\ns_endpgm"), 1) == 1
    assert smallest_nop(write(text.format("s_nop 7\ns_mov_b32 s0, 0") + "\ns_endpgm"), 1) == 0
    assert smallest_nop(write(text.format("s_nop 0\ns_nop 1") + "\ns_endpgm"), 1) is None
    # Already too short: making it shorter still adds no *new* pair.
    assert smallest_nop(write(text.format("s_nop 0") + "\ns_endpgm"), 1) is None
    with pytest.raises(ValueError, match="s_nop"):
        smallest_nop(write("s_endpgm"), 0)


_LINES = st.sampled_from([
    "v_mov_b32_e32 v0, v1", "v_mov_b32_e32 v1, v0", "v_exp_f32_e32 v0, v1",
    "v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf", "v_readlane_b32 s0, v0, 1",
    "v_readfirstlane_b32 s0, v1", "v_mov_b32_e32 v1, s0", "s_nop 0", "s_nop 1", "s_nop 3",
    "v_readlane_b32 s1, v0, s0", "global_load_dword v2, v3, s[0:1]", "s_cbranch_scc0 0",
    "s_cbranch_scc0 1", "s_cbranch_scc1 -3", "s_mov_b32 s4, 0"])


@settings(max_examples=150, deadline=None)
@given(st.lists(_LINES, min_size=4, max_size=14))
def test_a_nop_may_shrink_to_smallest_and_no_further(lines: list[str]) -> None:
    lines = ["s_nop 0", "s_nop 0", *lines]
    for index, line in enumerate(lines):
        if not line.startswith("s_nop"):
            continue
        program = _program(lines)
        known = _pairs(program)
        smallest = smallest_nop(program, index)
        for operand in range(int(line.split()[1]) + 1):
            shorter = _pairs(_program([*lines[:index], f"s_nop {operand}", *lines[index + 1:]]))
            assert (shorter <= known) is (smallest is None or operand >= smallest)


@settings(max_examples=150, deadline=None)
@given(st.lists(_LINES.filter(lambda line: "branch" not in line), max_size=14))
def test_requirements_that_are_not_met_are_the_hazards(lines: list[str]) -> None:
    program = _program(lines)
    found = requirements(program, [(0, len(program))])
    assert {(r.kind, r.producer, r.consumer) for r in found if r.found < r.needed} == (
        _pairs(program))
    nops = [k for k, line in enumerate(lines) if line.startswith("s_nop")]
    assert smallest_nops(program, nops) == {k: smallest_nop(program, k) for k in nops}


def test_a_requirement_that_is_met_says_by_how_much(write: Write) -> None:
    program = write("""
        v_readfirstlane_b32 s4, v9
        s_nop 6
        buffer_load_dword v0, off, s[4:7], 0
        s_endpgm""")
    (found,) = requirements(program, [(0, 3)])
    assert (found.producer, found.consumer, found.needed, found.found) == (0, 2, 5, 7)
    assert requirements(program, [(1, 3)]) == ()


def _program(lines: list[str]) -> Program:
    rows = [(4 * n, 4, line) for n, line in enumerate([*lines, "s_nop 0", "s_endpgm"])]
    return Program.from_disassembly(rows, {})


def _pairs(program: Program) -> set[tuple[str, int, int]]:
    return {(v.kind, v.producer, v.consumer) for v in hazards(program)}


def test_layer_norm_breaks_no_rule(kernel: Callable[[str], Program]) -> None:
    assert hazards(kernel("layer_norm.co")) == ()


def test_top_k_softmax_breaks_one_rule_only(small_kernels: list[Program]) -> None:
    """It moves a lane's value through an SGPR (v_readlane, v_mov) with nothing in between."""
    for program in small_kernels[1:]:
        violations = hazards(program)
        assert violations
        for violation in violations:
            assert violation.kind == "valu-sgpr-constant"
            assert violation.producer_text.startswith("v_readlane_b32 s")
            assert violation.consumer_text.startswith("v_mov_b32_e32 v")
            assert (violation.needed, violation.found) == (2, 0)


def test_production_nops_are_needed(small_kernels: list[Program]) -> None:
    """Hand-written nops agree with the table: shortening one breaks a rule, nearly always."""
    needed = unneeded = 0
    for program in small_kernels:
        cfg = Cfg.of(program)
        for index, instruction in enumerate(program.instructions):
            if instruction.op == "s_nop" and cfg.reachable(index):
                if smallest_nop(program, index) == instruction.operands[0].value:
                    needed += 1
                else:
                    unneeded += 1
    assert needed > 400
    assert unneeded <= 5
