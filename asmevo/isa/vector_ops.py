"""Vector ALU and matrix operations (CDNA2, CDNA3 and CDNA4 ISA, "Vector ALU Operations")."""

from __future__ import annotations

from asmevo.isa.form import Form
from asmevo.isa.instruction import Unit
from asmevo.isa.registers import EXEC_MASK, MODE_MASK, VCC_MASK

# EXEC masks every vector operation; MODE holds VSKIP, GPR indexing, rounding and denormals.
VECTOR_STATE = EXEC_MASK | MODE_MASK

# VOP1: one source, encodings e32/e64/dpp/sdwa.
_VOP1 = """
    v_mov_b32 v_mov_b64 v_cvt_i32_f64 v_cvt_f64_i32 v_cvt_f32_i32 v_cvt_f32_u32 v_cvt_u32_f32
    v_cvt_i32_f32 v_cvt_f16_f32 v_cvt_f32_f16 v_cvt_rpi_i32_f32 v_cvt_flr_i32_f32 v_cvt_off_f32_i4
    v_cvt_f32_f64 v_cvt_f64_f32 v_cvt_f32_ubyte0 v_cvt_f32_ubyte1 v_cvt_f32_ubyte2
    v_cvt_f32_ubyte3 v_cvt_u32_f64 v_cvt_f64_u32 v_trunc_f64 v_ceil_f64 v_rndne_f64 v_floor_f64
    v_fract_f32 v_trunc_f32 v_ceil_f32 v_rndne_f32 v_floor_f32 v_not_b32 v_bfrev_b32 v_ffbh_u32
    v_ffbl_b32 v_ffbh_i32 v_frexp_exp_i32_f64 v_frexp_mant_f64 v_fract_f64 v_frexp_exp_i32_f32
    v_frexp_mant_f32 v_cvt_f16_u16 v_cvt_f16_i16 v_cvt_u16_f16 v_cvt_i16_f16 v_frexp_mant_f16
    v_frexp_exp_i16_f16 v_floor_f16 v_ceil_f16 v_trunc_f16 v_rndne_f16 v_fract_f16
    v_cvt_norm_i16_f16 v_cvt_norm_u16_f16 v_sat_pk_u8_i16
    v_cvt_f32_bf8 v_cvt_f32_fp8 v_cvt_pk_f32_bf8 v_cvt_pk_f32_fp8 v_cvt_f32_bf16 v_prng_b32"""

_TRANS = """
    v_rcp_f32 v_rcp_iflag_f32 v_rsq_f32 v_sqrt_f32 v_exp_f32 v_log_f32 v_sin_f32 v_cos_f32
    v_exp_legacy_f32 v_log_legacy_f32 v_rcp_f64 v_rsq_f64 v_sqrt_f64
    v_rcp_f16 v_rsq_f16 v_sqrt_f16 v_exp_f16 v_log_f16 v_sin_f16 v_cos_f16"""

# VOP2: two sources, encodings e32/e64/dpp/sdwa.
_VOP2 = """
    v_add_f32 v_sub_f32 v_subrev_f32 v_mul_f32 v_mul_i32_i24 v_mul_hi_i32_i24
    v_mul_u32_u24 v_mul_hi_u32_u24 v_min_f32 v_max_f32 v_min_i32 v_max_i32 v_min_u32 v_max_u32
    v_lshrrev_b32 v_ashrrev_i32 v_lshlrev_b32 v_and_b32 v_or_b32 v_xor_b32 v_xnor_b32
    v_add_f16 v_sub_f16 v_subrev_f16 v_mul_f16 v_add_u16 v_sub_u16 v_subrev_u16 v_mul_lo_u16
    v_lshlrev_b16 v_lshrrev_b16 v_ashrrev_i16 v_max_f16 v_min_f16 v_max_u16 v_max_i16 v_min_u16
    v_min_i16 v_ldexp_f16 v_add_u32 v_sub_u32 v_subrev_u32"""
_VOP2_ACCUMULATE = """
    v_mac_f16 v_mac_f32 v_fmac_f32 v_fmac_f64 v_pk_fmac_f16
    v_dot2c_f32_f16 v_dot2c_i32_i16 v_dot4c_i32_i8 v_dot8c_i32_i4
    v_dot2c_f32_bf16"""
_VOP2_CARRY_OUT = "v_add_co_u32 v_sub_co_u32 v_subrev_co_u32"
_VOP2_CARRY_IN = "v_addc_co_u32 v_subb_co_u32 v_subbrev_co_u32"
_VOP2_LITERAL = "v_fmamk_f32 v_fmaak_f32 v_madmk_f16 v_madak_f16 v_madmk_f32 v_madak_f32"

# VOP3 and VOP3P only: no encoding suffix.
_TWO_SOURCES = """
    v_mul_legacy_f32 v_add_f64 v_mul_f64 v_min_f64 v_max_f64 v_ldexp_f64 v_mul_lo_u32 v_mul_hi_u32
    v_mul_hi_i32
    v_ldexp_f32 v_bcnt_u32_b32 v_mbcnt_lo_u32_b32 v_mbcnt_hi_u32_b32 v_lshlrev_b64 v_lshrrev_b64
    v_ashrrev_i64 v_trig_preop_f64 v_bfm_b32 v_cvt_pknorm_i16_f32 v_cvt_pknorm_u16_f32
    v_cvt_pkrtz_f16_f32 v_cvt_pk_u16_u32 v_cvt_pk_i16_i32 v_cvt_pknorm_i16_f16
    v_cvt_pknorm_u16_f16 v_add_i32 v_sub_i32 v_add_i16 v_sub_i16 v_pack_b32_f16
    v_pk_mul_lo_u16 v_pk_add_i16 v_pk_sub_i16 v_pk_lshlrev_b16 v_pk_lshrrev_b16 v_pk_ashrrev_i16
    v_pk_max_i16 v_pk_min_i16 v_pk_add_u16 v_pk_sub_u16 v_pk_max_u16 v_pk_min_u16 v_pk_add_f16
    v_pk_mul_f16 v_pk_min_f16 v_pk_max_f16 v_pk_mul_f32 v_pk_add_f32 v_pk_mov_b32
    v_cvt_pk_f16_f32 v_cvt_pk_bf16_f32
    v_cvt_scalef32_f32_fp8 v_cvt_scalef32_f32_bf8 v_cvt_scalef32_pk_f32_fp8
    v_cvt_scalef32_pk_f32_bf8 v_cvt_scalef32_pk_f32_fp4 v_cvt_scalef32_pk_f16_fp8
    v_cvt_scalef32_pk_f16_bf8 v_cvt_scalef32_pk_f16_fp4 v_cvt_scalef32_pk_bf16_fp8
    v_cvt_scalef32_pk_bf16_bf8 v_cvt_scalef32_pk_bf16_fp4
    v_cvt_scalef32_pk32_f32_fp6 v_cvt_scalef32_pk32_f32_bf6 v_cvt_scalef32_pk32_f16_fp6
    v_cvt_scalef32_pk32_f16_bf6 v_cvt_scalef32_pk32_bf16_fp6 v_cvt_scalef32_pk32_bf16_bf6
    v_cvt_scalef32_pk32_fp6_f16 v_cvt_scalef32_pk32_bf6_f16 v_cvt_scalef32_pk32_fp6_bf16
    v_cvt_scalef32_pk32_bf6_bf16"""
_THREE_SOURCES = """
    v_mad_i32_i24 v_mad_u32_u24 v_cubeid_f32 v_cubesc_f32 v_cubetc_f32
    v_cubema_f32 v_bfe_u32 v_bfe_i32 v_bfi_b32 v_fma_f32 v_fma_f64 v_lerp_u8 v_alignbit_b32
    v_alignbyte_b32 v_min3_f32 v_min3_i32 v_min3_u32 v_max3_f32 v_max3_i32 v_max3_u32 v_med3_f32
    v_med3_i32 v_med3_u32 v_sad_u8 v_sad_hi_u8 v_sad_u16 v_sad_u32 v_div_fixup_f32 v_div_fixup_f64
    v_msad_u8 v_qsad_pk_u16_u8 v_mqsad_pk_u16_u8 v_mqsad_u32_u8 v_mad_legacy_f16 v_mad_legacy_u16
    v_mad_legacy_i16 v_perm_b32 v_fma_legacy_f16 v_div_fixup_legacy_f16 v_mad_u32_u16
    v_mad_i32_i16 v_xad_u32 v_min3_f16 v_min3_i16 v_min3_u16 v_max3_f16 v_max3_i16 v_max3_u16
    v_med3_f16 v_med3_i16 v_med3_u16 v_lshl_add_u32 v_add_lshl_u32 v_add3_u32 v_lshl_or_b32
    v_and_or_b32 v_or3_b32 v_lshl_add_u64 v_pk_mad_i16 v_pk_mad_u16 v_pk_fma_f16 v_pk_fma_f32
    v_fma_mix_f32 v_mad_f32 v_mad_legacy_f32 v_bitop3_b32 v_minimum3_f32 v_maximum3_f32
    v_pk_minimum3_f16 v_pk_maximum3_f16
    v_cvt_scalef32_2xpk16_fp6_f32 v_cvt_scalef32_2xpk16_bf6_f32
    v_cvt_scalef32_sr_pk32_fp6_f32 v_cvt_scalef32_sr_pk32_bf6_f32 v_cvt_scalef32_sr_pk32_fp6_f16
    v_cvt_scalef32_sr_pk32_bf6_f16 v_cvt_scalef32_sr_pk32_fp6_bf16
    v_cvt_scalef32_sr_pk32_bf6_bf16"""
_DOT = """
    v_dot2_f32_f16 v_dot2_i32_i16 v_dot2_u32_u16 v_dot4_i32_i8 v_dot4_u32_u8 v_dot8_i32_i4
    v_dot8_u32_u4 v_dot2_f32_bf16"""
# Some bits of the destination keep their value.
_HALF_TWO_SOURCES = """
    v_cvt_pk_fp8_f32 v_cvt_pk_bf8_f32 v_cvt_sr_fp8_f32 v_cvt_sr_bf8_f32 v_cvt_pkaccum_u8_f32
    v_cvt_sr_f16_f32 v_cvt_sr_bf16_f32 v_cvt_scalef32_f16_fp8 v_cvt_scalef32_f16_bf8
    v_cvt_scalef32_pk_fp8_f16 v_cvt_scalef32_pk_bf8_f16 v_cvt_scalef32_pk_fp8_bf16
    v_cvt_scalef32_pk_bf8_bf16 v_cvt_scalef32_pk_fp4_f16 v_cvt_scalef32_pk_fp4_bf16"""
_HALF_THREE_SOURCES = """
    v_mad_f16 v_mad_u16 v_mad_i16 v_fma_f16 v_div_fixup_f16
    v_fma_mixlo_f16 v_fma_mixhi_f16 v_cvt_pk_u8_f32 v_bitop3_b16 v_ashr_pk_i8_i32 v_ashr_pk_u8_i32
    v_cvt_scalef32_pk_fp8_f32 v_cvt_scalef32_pk_bf8_f32 v_cvt_scalef32_pk_fp4_f32
    v_cvt_scalef32_sr_fp8_f32 v_cvt_scalef32_sr_bf8_f32 v_cvt_scalef32_sr_fp8_f16
    v_cvt_scalef32_sr_bf8_f16 v_cvt_scalef32_sr_fp8_bf16 v_cvt_scalef32_sr_bf8_bf16
    v_cvt_scalef32_sr_pk_fp4_f32 v_cvt_scalef32_sr_pk_fp4_f16 v_cvt_scalef32_sr_pk_fp4_bf16"""

_MFMA = """
    f32_32x32x1_2b_f32 f32_16x16x1_4b_f32 f32_4x4x1_16b_f32 f32_32x32x2_f32 f32_16x16x4_f32
    f32_32x32x4_2b_f16 f32_16x16x4_4b_f16 f32_4x4x4_16b_f16 f32_32x32x8_f16 f32_16x16x16_f16
    f32_32x32x4_2b_bf16 f32_16x16x4_4b_bf16 f32_4x4x4_16b_bf16 f32_32x32x8_bf16 f32_16x16x16_bf16
    i32_32x32x4_2b_i8 i32_16x16x4_4b_i8 i32_4x4x4_16b_i8 i32_32x32x16_i8 i32_16x16x32_i8
    f64_16x16x4_f64 f64_4x4x4_4b_f64 f32_16x16x8_xf32 f32_32x32x4_xf32
    f32_16x16x32_bf8_bf8 f32_16x16x32_bf8_fp8 f32_16x16x32_fp8_bf8 f32_16x16x32_fp8_fp8
    f32_32x32x16_bf8_bf8 f32_32x32x16_bf8_fp8 f32_32x32x16_fp8_bf8 f32_32x32x16_fp8_fp8
    f32_16x16x32_f16 f32_32x32x16_f16 f32_16x16x32_bf16 f32_32x32x16_bf16
    i32_16x16x64_i8 i32_32x32x32_i8 f32_16x16x128_f8f6f4 f32_32x32x64_f8f6f4"""
# gfx90a writes the same operations without separators, and its bf16 ones twice.
_MFMA_GFX90A = """
    f32_32x32x1f32 f32_16x16x1f32 f32_4x4x1f32 f32_32x32x2f32 f32_16x16x4f32
    f32_32x32x4f16 f32_16x16x4f16 f32_4x4x4f16 f32_32x32x8f16 f32_16x16x16f16
    f32_32x32x2bf16 f32_16x16x2bf16 f32_4x4x2bf16 f32_32x32x4bf16 f32_16x16x8bf16
    f32_32x32x4bf16_1k f32_16x16x4bf16_1k f32_4x4x4bf16_1k f32_32x32x8bf16_1k f32_16x16x16bf16_1k
    i32_32x32x4i8 i32_16x16x4i8 i32_4x4x4i8 i32_32x32x8i8 i32_16x16x16i8
    f64_16x16x4f64 f64_4x4x4f64"""
_MFMA_SCALE = "f32_16x16x128_f8f6f4 f32_32x32x64_f8f6f4"
_SMFMAC = """
    f32_16x16x32_f16 f32_32x32x16_f16 f32_16x16x32_bf16 f32_32x32x16_bf16 i32_16x16x64_i8
    i32_32x32x32_i8 f32_16x16x64_bf8_bf8 f32_16x16x64_bf8_fp8 f32_16x16x64_fp8_bf8
    f32_16x16x64_fp8_fp8 f32_32x32x32_bf8_bf8 f32_32x32x32_bf8_fp8 f32_32x32x32_fp8_bf8
    f32_32x32x32_fp8_fp8
    f32_16x16x64_f16 f32_32x32x32_f16 f32_16x16x64_bf16 f32_32x32x32_bf16 i32_16x16x128_i8
    i32_32x32x64_i8 f32_16x16x128_bf8_bf8 f32_16x16x128_bf8_fp8 f32_16x16x128_fp8_bf8
    f32_16x16x128_fp8_fp8 f32_32x32x64_bf8_bf8 f32_32x32x64_bf8_fp8 f32_32x32x64_fp8_bf8
    f32_32x32x64_fp8_fp8"""

_FLOAT_CONDITIONS = "f lt eq le gt lg ge o u nge nlg ngt nle neq nlt tru"
_INTEGER_CONDITIONS = "f lt eq le gt ne ge t"


def _compares() -> dict[str, Form]:
    conditions = [
        f"{c}_{t}" for c in _FLOAT_CONDITIONS.split() for t in ("f16", "f32", "f64")
    ] + [
        f"{c}_{t}" for c in _INTEGER_CONDITIONS.split()
        for t in ("i16", "u16", "i32", "u32", "i64", "u64")
    ] + ["class_f16", "class_f32", "class_f64"]
    forms: dict[str, Form] = {}
    for condition in conditions:
        forms[f"v_cmp_{condition}"] = Form(Unit.VALU, "wrr", VECTOR_STATE, suffixed=True)
        # v_cmpx writes EXEC besides its destination.
        forms[f"v_cmpx_{condition}"] = Form(
            Unit.VALU, "wrr", VECTOR_STATE, EXEC_MASK, suffixed=True)
    return forms


def _table() -> dict[str, Form]:
    forms: dict[str, Form] = {}

    def add(ops: str, unit: Unit, roles: str, reads: int = VECTOR_STATE, *,
            suffixed: bool = False) -> None:
        for op in ops.split():
            forms[op] = Form(unit, roles, reads, suffixed=suffixed)

    add(_VOP1, Unit.VALU, "wr", suffixed=True)
    add(_TRANS, Unit.TRANS, "wr", suffixed=True)
    add("v_screen_partition_4se_b32", Unit.VALU, "wr", suffixed=True)
    add("v_nop v_clrexcp", Unit.VALU, "", 0)
    add("v_swap_b32", Unit.VALU, "xx")
    add("v_permlane16_swap_b32 v_permlane32_swap_b32", Unit.VALU, "xx", suffixed=True)
    add(_VOP2, Unit.VALU, "wrr", suffixed=True)
    add(_VOP2_ACCUMULATE, Unit.VALU, "xrr", suffixed=True)
    add(_VOP2_CARRY_OUT, Unit.VALU, "wwrr", suffixed=True)
    add(_VOP2_CARRY_IN, Unit.VALU, "wwrrr", suffixed=True)
    add("v_cndmask_b32", Unit.VALU, "wrrr", suffixed=True)
    add(_VOP2_LITERAL, Unit.VALU, "wrrr")
    forms |= _compares()

    add(_TWO_SOURCES, Unit.VALU, "wrr")
    add(_THREE_SOURCES, Unit.VALU, "wrrr")
    add(_DOT, Unit.VALU, "wrrr")
    add(_HALF_TWO_SOURCES, Unit.VALU, "xrr")
    add(_HALF_THREE_SOURCES, Unit.VALU, "xrrr")
    add("v_div_fmas_f32 v_div_fmas_f64", Unit.VALU, "wrrr", VECTOR_STATE | VCC_MASK)
    add("v_div_scale_f32 v_div_scale_f64 v_mad_u64_u32 v_mad_i64_i32", Unit.VALU, "wwrrr")

    # Lane access ignores EXEC, except that v_readfirstlane picks the first active lane.
    add("v_readfirstlane_b32", Unit.VALU, "wr")
    add("v_readlane_b32", Unit.VALU, "wrr", MODE_MASK)
    add("v_writelane_b32", Unit.VALU, "xrr", MODE_MASK)

    add("v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32", Unit.VALU, "wr")
    # Matrix operations ignore EXEC (CDNA3 ISA, "Matrix Arithmetic Instructions").
    for shape in (_MFMA + _MFMA_GFX90A).split():
        forms[f"v_mfma_{shape}"] = Form(Unit.MFMA, "wrrr", MODE_MASK)
    for shape in _MFMA_SCALE.split():
        forms[f"v_mfma_scale_{shape}"] = Form(Unit.MFMA, "wrrrrr", MODE_MASK)
    for shape in _SMFMAC.split():
        forms[f"v_smfmac_{shape}"] = Form(Unit.MFMA, "xrrr", MODE_MASK)
    return forms


VECTOR_FORMS = _table()
