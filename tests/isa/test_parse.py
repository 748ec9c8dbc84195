"""Instruction text: grammar, effects, refusals."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.isa.instruction import OperandKind, Unit, WaitCount
from asmevo.isa.parse import ParseError, UnknownInstructionError, parse
from asmevo.isa.registers import EXEC_MASK, MODE_MASK, names

_VECTOR_STATE = EXEC_MASK | MODE_MASK

# Text -> (reads, writes) by hand from the CDNA3 ISA document, EXEC and MODE of vector operations
# left out. The tricky cases: implicit registers, destinations that keep bits, accumulators.
EFFECTS = {
    "s_add_u32 s1, s2, s3": ("s2, s3", "s1, scc"),
    "s_addc_u32 s1, s2, 0": ("s2, scc", "s1, scc"),
    "s_mul_i32 s1, s2, s3": ("s2, s3", "s1"),
    "s_cselect_b32 s1, 1, 0": ("scc", "s1"),
    "s_cmp_lt_u32 s1, s2": ("s1, s2", "scc"),
    "s_cmpk_eq_u32 s57, 0x1": ("s57", "scc"),
    "s_addk_i32 s7, 0x1": ("s7", "s7, scc"),
    "s_mulk_i32 s7, 0x3": ("s7", "s7"),
    "s_movk_i32 s7, 0x3": ("", "s7"),
    "s_cmov_b32 s1, s2": ("s1, s2, scc", "s1"),
    "s_bitset1_b32 s1, s2": ("s1, s2", "s1"),
    "s_lshl1_add_u32 s20, s20, s60": ("s20, s60", "s20, scc"),
    "s_bfm_b64 exec, s18, 0": ("s18", "exec_lo, exec_hi"),
    "s_and_saveexec_b64 s[8:9], vcc": (
        "vcc_lo, vcc_hi, exec_lo, exec_hi", "s8, s9, exec_lo, exec_hi, scc"),
    "s_add_u32 m0, 0x880, m0": ("m0", "m0, scc"),
    "s_getpc_b64 s[4:5]": ("", "s4, s5"),
    "s_set_gpr_idx_on s48, gpr_idx(DST)": ("s48, mode", "m0, mode"),
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0xf0": ("mode", "mode"),
    "s_setvskip s20, 3": ("s20, mode", "mode"),
    "s_cbranch_vccnz 12": ("vcc_lo, vcc_hi", ""),
    "s_cbranch_execz 12": ("exec_lo, exec_hi", ""),
    "s_cbranch_scc1 12": ("scc", ""),
    "s_load_dwordx2 s[12:13], s[0:1], 0x0": ("s0, s1", "s12, s13"),
    "s_load_dword s62, s[56:57], s83 glc": ("s56, s57, s83", "s62"),
    "s_store_dword s82, s[56:57], s84 glc": ("s56, s57, s82, s84", ""),
    "s_atomic_inc s78, s[40:41], s86": ("s40, s41, s78, s86", ""),
    "s_atomic_inc s78, s[40:41], s86 glc": ("s40, s41, s78, s86", "s78"),
    "v_fmac_f32_e32 v1, v2, v3": ("v1, v2, v3", "v1"),
    "v_cmp_gt_i32_e32 vcc, s6, v2": ("s6, v2", "vcc_lo, vcc_hi"),
    "v_cmpx_gt_i32_e32 vcc, s6, v2": ("s6, v2", "vcc_lo, vcc_hi, exec_lo, exec_hi"),
    "v_cndmask_b32_e32 v4, v4, v6, vcc": ("vcc_lo, vcc_hi, v4, v6", "v4"),
    "v_cndmask_b32_e64 v60, v56, v58, s[92:93]": ("s92, s93, v56, v58", "v60"),
    "v_addc_co_u32_e32 v0, vcc, v1, v2, vcc": ("vcc_lo, vcc_hi, v1, v2", "vcc_lo, vcc_hi, v0"),
    "v_add_co_u32_e64 v0, s[2:3], v1, v2": ("v1, v2", "s2, s3, v0"),
    "v_mad_u64_u32 v[2:3], s[16:17], s4, v3, v[2:3]": ("s4, v2, v3", "s16, s17, v2, v3"),
    "v_div_fmas_f32 v0, v1, v2, v3": ("vcc_lo, vcc_hi, v1, v2, v3", "v0"),
    "v_div_scale_f32 v0, vcc, v1, v2, v3": ("v1, v2, v3", "vcc_lo, vcc_hi, v0"),
    "v_writelane_b32 v26, s20, 0": ("s20, v26", "v26"),
    "v_readlane_b32 s9, v235, 1": ("v235", "s9"),
    "v_readfirstlane_b32 s5, v3": ("v3", "s5"),
    "v_swap_b32 v1, v2": ("v1, v2", "v1, v2"),
    "v_cvt_pk_fp8_f32 v128, v130, v131 op_sel:[0,0,1]": ("v128, v130, v131", "v128"),
    "v_cvt_pk_fp8_f32 v128, v130, v131": ("v128, v130, v131", "v128"),
    "v_pack_b32_f16 v6, v3, v5 op_sel:[1,0,0]": ("v3, v5", "v6"),
    "v_add_i16 v6, v3, v5 op_sel:[0,0,1]": ("v3, v5, v6", "v6"),
    "v_pk_fma_f32 v[0:1], v[2:3], s[4:5], v[6:7] op_sel_hi:[1,0,1]": (
        "s4, s5, v2, v3, v6, v7", "v0, v1"),
    "v_mov_b32_dpp v127, v124 quad_perm:[3,3,3,3] row_mask:0xf bank_mask:0xf": ("v124", "v127"),
    "v_mov_b32_dpp v38, v46 row_shr:4 row_mask:0xf bank_mask:0xf": ("v38, v46", "v38"),
    "v_mov_b32_dpp v38, v46 row_shl:8 row_mask:0xf bank_mask:0xf bound_ctrl:1": ("v46", "v38"),
    "v_mov_b32_dpp v38, v46 row_shl:8 row_mask:0x5 bank_mask:0xf bound_ctrl:1": ("v38, v46", "v38"),
    "v_mov_b32_dpp v216, v36 row_ror:8 row_mask:0xf bank_mask:0xf": ("v36", "v216"),
    "v_add_f32_dpp v4, v5, v6 row_bcast:15 row_mask:0xa bank_mask:0xf": ("v4, v5, v6", "v4"),
    "v_mul_f32_dpp v1, v15, v2 row_newbcast:0 row_mask:0xf bank_mask:0xf": ("v2, v15", "v1"),
    "v_cvt_f16_f32_sdwa v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD": (
        "v1, v2", "v1"),
    "v_cvt_f16_f32_sdwa v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD": ("v2", "v1"),
    "v_cvt_f32_f16_sdwa v1, v2 dst_sel:DWORD dst_unused:UNUSED_PRESERVE src0_sel:WORD_1": (
        "v2", "v1"),
    "v_accvgpr_write_b32 a255, 0": ("", "a255"),
    "v_accvgpr_read_b32 v30, a160": ("a160", "v30"),
    "buffer_load_dword v152, v1, s[12:15], 0 idxen": ("s12, s13, s14, s15, v1", "v152"),
    "buffer_load_dword v15, s[4:7], s3 offen lds": ("s3, s4, s5, s6, s7, m0, v15", ""),
    "buffer_load_short_d16_hi v1, v2, s[4:7], 0 offen": ("s4, s5, s6, s7, v1, v2", "v1"),
    "buffer_load_dwordx4 a[0:3], v4, s[20:23], 0 offen": (
        "s20, s21, s22, s23, v4", "a0, a1, a2, a3"),
    "buffer_store_dwordx2 v[90:91], off, s[8:11], 0": ("s8, s9, s10, s11, v90, v91", ""),
    "buffer_atomic_add v1, v2, s[4:7], 0 offen": ("s4, s5, s6, s7, v1, v2", ""),
    "buffer_atomic_add v1, v2, s[4:7], 0 offen sc0": ("s4, s5, s6, s7, v1, v2", "v1"),
    "global_load_dword v6, v44, s[44:45]": ("s44, s45, v44", "v6"),
    "global_store_dwordx2 v[4:5], v[6:7], off": ("v4, v5, v6, v7", ""),
    "global_atomic_add_f32 v4, v40, s[16:17]": ("s16, s17, v4, v40", ""),
    "global_atomic_add_f32 v1, v[2:3], v4, off sc0": ("v2, v3, v4", "v1"),
    "flat_load_dword v1, v[2:3]": ("flat_scratch_lo, flat_scratch_hi, v2, v3", "v1"),
    "ds_read_b128 v[92:95], v10 offset:8704": ("v10", "v92, v93, v94, v95"),
    "ds_read_u16_d16_hi v1, v2": ("v1, v2", "v1"),
    "ds_read2_b32 v[0:1], v4 offset0:1 offset1:3": ("v4", "v0, v1"),
    "ds_write2_b64 v0, v[2:3], v[4:5] offset1:1": ("v0, v2, v3, v4, v5", ""),
    "ds_add_rtn_u32 v0, v1, v2": ("v1, v2", "v0"),
    "ds_bpermute_b32 v184, v186, v148": ("v148, v186", "v184"),
    "v_add_f32_e64 v0, src_execz, v1": ("v1", "v0"),
    "s_mov_b64 s[14:15], src_shared_base": ("", "s14, s15"),
    "v_mfma_f32_16x16x16_bf16 a[0:3], v[8:9], a[4:5], a[0:3]": (
        "mode, v8, v9, a0, a1, a2, a3, a4, a5", "a0, a1, a2, a3"),
    "v_smfmac_f32_16x16x32_f16 v[0:3], v[8:9], v[12:15], v20": (
        "mode, v0, v1, v2, v3, v8, v9, v12, v13, v14, v15, v20", "v0, v1, v2, v3"),
    # gfx950
    "v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[4:7], v[8:11], v[0:3], v12, v13 "
    "op_sel_hi:[0,0,0] cbsz:4 blgp:4": (
        "mode, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13", "a0, a1, a2, a3"),
    "v_permlane32_swap_b32_e32 v1, v2": ("v1, v2", "v1, v2"),
    "v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3 op_sel:[0,0,1,0]": ("v0, v1, v2, v3", "v0"),
    "v_cvt_scalef32_pk_f32_fp4 v[0:1], v2, s3 op_sel:[1,0,0]": ("s3, v2", "v0, v1"),
    "v_cvt_pk_bf16_f32 v0, v1, v2": ("v1, v2", "v0"),
    "v_bitop3_b32 v0, v1, v2, v3 bitop3:0x1b": ("v1, v2, v3", "v0"),
    "ds_read_b64_tr_b16 a[0:1], v2": ("v2", "a0, a1"),
    "buffer_load_dwordx4 v0, s[4:7], 0 offen lds": ("s4, s5, s6, s7, m0, v0", ""),
    # gfx90a
    "global_atomic_add v1, v[2:3], v4, off glc": ("v2, v3, v4", "v1"),
    "buffer_load_dword v1, v2, s[4:7], 0 offen glc slc scc": ("s4, s5, s6, s7, v2", "v1"),
    "v_mac_f32_e32 v1, v2, v3": ("v1, v2, v3", "v1"),
    "v_madak_f32 v1, v2, v3, 0x12345678": ("v2, v3", "v1"),
    "v_mfma_f64_4x4x4f64 a[0:1], v[2:3], v[4:5], 0": ("mode, v2, v3, v4, v5", "a0, a1"),
    "tbuffer_load_format_xy v[0:1], v2, s[4:7], 0 format:[BUF_NUM_FORMAT_UINT] offen": (
        "s4, s5, s6, s7, v2", "v0, v1"),
    "s_add_u32 s4, s4, f@rel32@lo+4": ("s4", "s4, scc"),
    "s_swappc_b64 s[30:31], s[4:5]": ("s4, s5", "s30, s31"),
}


@pytest.mark.parametrize("text", EFFECTS)
def test_reads_and_writes(text: str) -> None:
    instruction = parse(text)
    reads, writes = EFFECTS[text]
    vector = instruction.op.startswith(("v_", "ds_", "buffer_", "tbuffer_", "global_", "flat_"))
    ignored = _VECTOR_STATE if vector and instruction.unit is not Unit.MFMA else 0
    assert names(instruction.reads & ~ignored) == reads
    assert names(instruction.writes) == writes


@pytest.mark.parametrize(("text", "masked"), [
    ("v_add_f32_e32 v0, v1, v2", True), ("buffer_load_dword v0, v1, s[0:3], 0 offen", True),
    ("ds_read_b32 v0, v1", True), ("v_readfirstlane_b32 s0, v1", True),
    ("v_readlane_b32 s0, v1, 0", False), ("v_writelane_b32 v0, s1, 0", False),
    ("v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0", False), ("s_mov_b32 s0, s1", False)])
def test_exec_masks_vector_operations(text: str, masked: bool) -> None:
    assert bool(parse(text).reads & EXEC_MASK) is masked


@pytest.mark.parametrize(("text", "counts"), [
    ("buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen", (1, 0)),
    ("buffer_store_dword v0, v4, s[0:3], 0 offen", (1, 0)),
    ("global_atomic_add_f32 v4, v40, s[16:17]", (1, 0)),
    ("flat_load_dword v0, v[2:3]", (1, 1)), ("ds_write_b64 v0, v[2:3]", (0, 1)),
    ("ds_bpermute_b32 v0, v1, v2", (0, 1)), ("s_load_dword s0, s[2:3], 0x0", (0, 1)),
    ("s_load_dwordx2 s[0:1], s[2:3], 0x0", (0, 2)), ("buffer_inv sc1", (0, 0)),
    ("v_add_f32_e32 v0, v1, v2", (0, 0))])
def test_counters(text: str, counts: tuple[int, int]) -> None:
    instruction = parse(text)
    assert (instruction.vmcnt, instruction.lgkmcnt) == counts


@pytest.mark.parametrize(("text", "wait"), [
    ("s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)", WaitCount(0, 0, 0)),
    ("s_waitcnt vmcnt(20) lgkmcnt(0)", WaitCount(20, None, 0)),
    ("s_waitcnt vmcnt(3) & lgkmcnt(1)", WaitCount(3, None, 1)),
    ("s_waitcnt lgkmcnt(7), vmcnt(63)", WaitCount(63, None, 7)),
    ("s_waitcnt vmcnt_sat(99)", WaitCount(63, None, None)),
    ("s_waitcnt 0", WaitCount(0, 0, 0)),
    ("s_waitcnt 0xc07f", WaitCount(None, None, 0)),
    ("s_waitcnt 0x4f74", WaitCount(20, None, None))])
def test_wait_counts(text: str, wait: WaitCount) -> None:
    assert parse(text).wait == wait


@pytest.mark.parametrize(("text", "value"), [
    ("0", 0), ("-1", 0xFFFFFFFF), ("0xbfcc4231", 0xBFCC4231), ("64", 64), ("0.5", 0x3F000000),
    ("-4.0", 0xC0800000), ("0.15915494", 0x3E22F983), ("0.15915494309189532", 0x3E22F983)])
def test_constants(text: str, value: int) -> None:
    operand = parse(f"v_add_f32_e32 v0, {text}, v1").operands[1]
    assert (operand.kind, operand.value, operand.neg) == (OperandKind.CONSTANT, value, False)


@pytest.mark.parametrize(("text", "flags"), [
    ("-v1", (True, False)), ("|v1|", (False, True)), ("-|v1|", (True, True)),
    ("neg(v1)", (True, False)), ("abs(v1)", (False, True)), ("-abs(v1)", (True, True)),
    ("neg(|v1|)", (True, True)), ("v1", (False, False))])
def test_input_modifiers(text: str, flags: tuple[bool, bool]) -> None:
    operand = parse(f"v_fma_f32 v0, v2, {text}, v3").operands[2]
    assert (operand.text, operand.neg, operand.abs) == ("v1", *flags)


def test_sign_extension_is_an_input_modifier() -> None:
    text = "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD src0_sel:BYTE_0 src1_sel:DWORD"
    assert parse(text).operands[1].sext


def test_modifiers_have_values() -> None:
    instruction = parse("v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0x5")
    assert instruction.modifier("quad_perm") == (1, 0, 3, 2)
    assert instruction.modifier("bank_mask") == 5
    assert parse("buffer_load_dword v0, v1, s[0:3], 0 offen offset:256 sc0 nt sc1").modifiers == (
        ("offen", 1), ("offset", 256), ("sc0", 1), ("nt", 1), ("sc1", 1))
    assert parse("ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,3)").modifier("offset") == (
        "swizzle(QUAD_PERM,0,1,2,3)")


@pytest.mark.parametrize(("text", "value"), [
    ("s_set_gpr_idx_on s1, gpr_idx(SRC0,DST)", 9), ("s_set_gpr_idx_on s1, gpr_idx()", 0),
    ("s_getreg_b32 s1, hwreg(HW_REG_MODE, 4, 2)", 1 | 4 << 6 | 1 << 11),
    ("s_getreg_b32 s1, hwreg(HW_REG_HW_ID)", 4 | 31 << 11),
    ("s_sendmsg sendmsg(MSG_INTERRUPT)", 1), ("s_sendmsg sendmsg(2, 1, 3)", 2 | 1 << 4 | 3 << 8)])
def test_named_fields_encode(text: str, value: int) -> None:
    operand = parse(text).operands[-1]
    assert (operand.kind, operand.value) == (OperandKind.NAMED, value)


@pytest.mark.parametrize("text", [
    "", "v_add_f32_e32", "v_add_f32_e32 v0, v1", "v_add_f32_e32 v0, v1, v2, v3", "s_endpgm s0",
    "v_add_f32_e32 v0, v1, v256", "s_mov_b32 s102, 0", "v_mov_b64_e32 v[255:256], 0",
    "v_mov_b64_e32 v[3:2], 0", "s_mov_b32 0, s1", "v_mov_b32_e32 off, v1", "s_mov_b32 s0, 1 2",
    "s_mov_b32 s0, 0x100000000", "s_mov_b32 s0, -2147483649", "s_mov_b32 s0, 1e99",
    "v_mov_b32_e32 -v0, v1", "s_waitcnt", "s_waitcnt vmcnt(64)", "s_waitcnt vmcnt(1) vmcnt(2)",
    "s_waitcnt nonsense", "s_branch 0x12345", "s_branch 1+2", "s_mov_b64 [s0, s1], 0",
    "s_sendmsg sendmsg(2, 8)", "s_sendmsg sendmsg(1, 1, 1, 1)",
    "buffer_load_dword v0, v1, s[0:3], 0 offen tfe", "v_mov_b32_e32 v0, src_lds_direct",
    "ds_read_b32 v0, v1 offset:", "ds_read_b32 v0, v1 offset:1 offset:2",
    "v_mov_b32_dpp v0, v1 quad_perm:3", "s_getreg_b32 s0, hwreg(77)", "s_mov_b32 s0, " + "1" * 600,
    "v_add_f32_e32 v0, v1, v2 dst_sel:NIBBLE", "v_mov_b32_e32 v0, |v1", "v_mov_b32_e32 v0,"])
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize("mnemonic", [
    "s_bogus", "v_add3_u32_e32", "s_add_u32_e64", "v_add_f32_e99", "s_movrels_b32", ".quad",
    "tbuffer_load_format_q", "exp", "image_load"])
def test_an_unknown_mnemonic_is_named(mnemonic: str) -> None:
    with pytest.raises(UnknownInstructionError, match=mnemonic):
        parse(f"{mnemonic} v0, v1")


@given(st.text(max_size=80))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        parse(text)
    except ParseError:
        return


@given(st.sampled_from(list(EFFECTS)), st.data())
def test_damaged_text_parses_or_is_refused(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    middle = data.draw(st.text(alphabet="sva0123456789[]:,|-() x.", max_size=4))
    try:
        parse(text[:start] + middle + text[end:])
    except ParseError:
        return


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_constants_are_f32_bits(value: float) -> None:
    text = f"{value:.60f}".rstrip("0")
    if len(text) <= 64:
        operand = parse(f"v_mov_b32_e32 v0, {text}").operands[1]
        assert operand.value == struct.unpack("<I", struct.pack("<f", float(text)))[0]


@given(st.integers(-(1 << 31), (1 << 32) - 1), st.sampled_from(["d", "#x"]))
def test_integer_constants_keep_their_bits(value: int, style: str) -> None:
    operand = parse(f"s_mov_b32 s0, {format(value, style)}").operands[1]
    assert operand.value == value & 0xFFFFFFFF


@pytest.mark.parametrize("text", EFFECTS)
def test_canonical_text_parses_to_the_same_instruction(text: str) -> None:
    instruction = parse(f"  {text.replace(' ', '   ')} ")
    assert instruction.text == text
    assert parse(instruction.text) == instruction
    assert parse(text.replace(", ", ",")).reads == instruction.reads


def test_canonical_text_has_llvm_spacing() -> None:
    assert parse("v_cndmask_b32  v0,v1,v2,vcc").text == "v_cndmask_b32_e32 v0, v1, v2, vcc"
    assert parse("ds_read_b32 v0,v1  offset:4").text == "ds_read_b32 v0, v1 offset:4"
    assert parse("s_waitcnt  vmcnt(0)  lgkmcnt(0)").text == "s_waitcnt vmcnt(0) lgkmcnt(0)"
