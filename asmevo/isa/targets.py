"""The processors AsmEvo models, and the operations that only some of them have.

The instruction model is shared: an operation means the same wherever it exists. What differs is
which operations exist (here), how many passes a matrix operation takes
(:mod:`asmevo.isa.matrix_timing`) and which wait states are needed
(:mod:`asmevo.isa.hazard_rules`). Availability is LLVM's: the sets below are what its disassembler
decodes for each processor over the whole opcode space.
"""

from __future__ import annotations

import re

from asmevo.isa.errors import TargetError
from asmevo.isa.opcodes import OPCODES

GFX90A = "gfx90a"
GFX942 = "gfx942"
GFX950 = "gfx950"
TARGETS = (GFX90A, GFX942, GFX950)

_GFX90A_ONLY = """
    buffer_invl2 buffer_wbinvl1 buffer_wbinvl1_vol v_mac_f32 v_mad_f32 v_mad_legacy_f32 v_madak_f32
    v_madmk_f32"""
_GFX942_ONLY = "v_mfma_f32_16x16x8_xf32 v_mfma_f32_32x32x4_xf32"
_GFX950_ONLY = """
    buffer_atomic_pk_add_bf16 ds_read_b64_tr_b4 ds_read_b96_tr_b6 ds_read_b64_tr_b8
    ds_read_b64_tr_b16 global_load_lds_dwordx3 global_load_lds_dwordx4 v_ashr_pk_i8_i32
    v_ashr_pk_u8_i32 v_bitop3_b16 v_bitop3_b32 v_cvt_f32_bf16 v_cvt_pk_bf16_f32 v_cvt_pk_f16_f32
    v_cvt_sr_bf16_f32 v_cvt_sr_f16_f32 v_dot2_f32_bf16 v_dot2c_f32_bf16 v_maximum3_f32
    v_minimum3_f32 v_permlane16_swap_b32 v_permlane32_swap_b32 v_pk_maximum3_f16 v_pk_minimum3_f16
    v_prng_b32
    v_mfma_f32_16x16x32_bf16 v_mfma_f32_16x16x32_f16 v_mfma_f32_32x32x16_bf16
    v_mfma_f32_32x32x16_f16 v_mfma_i32_16x16x64_i8 v_mfma_i32_32x32x32_i8
    v_smfmac_f32_16x16x64_bf16 v_smfmac_f32_16x16x64_f16 v_smfmac_f32_32x32x32_bf16
    v_smfmac_f32_32x32x32_f16 v_smfmac_i32_16x16x128_i8 v_smfmac_i32_32x32x64_i8
    v_smfmac_f32_16x16x128_bf8_bf8 v_smfmac_f32_16x16x128_bf8_fp8 v_smfmac_f32_16x16x128_fp8_bf8
    v_smfmac_f32_16x16x128_fp8_fp8 v_smfmac_f32_32x32x64_bf8_bf8 v_smfmac_f32_32x32x64_bf8_fp8
    v_smfmac_f32_32x32x64_fp8_bf8 v_smfmac_f32_32x32x64_fp8_fp8"""
_GFX942_AND_LATER = """
    buffer_inv ds_pk_add_bf16 ds_pk_add_f16 ds_pk_add_rtn_bf16 ds_pk_add_rtn_f16
    flat_atomic_add_f32 flat_atomic_pk_add_bf16 flat_atomic_pk_add_f16 global_atomic_pk_add_bf16
    v_cvt_f32_bf8 v_cvt_f32_fp8 v_cvt_pk_bf8_f32 v_cvt_pk_f32_bf8 v_cvt_pk_f32_fp8
    v_cvt_pk_fp8_f32 v_cvt_sr_bf8_f32 v_cvt_sr_fp8_f32 v_fmaak_f32 v_fmamk_f32 v_lshl_add_u64
    v_mov_b64"""

_LATER = frozenset({GFX942, GFX950})
# gfx90a writes the shape and the source type of a matrix operation in one word.
_GFX90A_MATRIX = re.compile(r"v_mfma_[a-z0-9]+_[0-9]+x[0-9]+x[0-9]+[a-z]\w*")

# Steppings of one processor.
_SAME_MODEL = {"gfx940": GFX942, "gfx941": GFX942}


def model(isa: str) -> str:
    """The entry of :data:`TARGETS` that stands for an LLVM processor name.

    Raises TargetError for a processor that AsmEvo has no tables for.
    """
    name = _SAME_MODEL.get(isa, isa)
    if name not in TARGETS:
        raise TargetError(isa, TARGETS)
    return name


def targets_of(op: str) -> frozenset[str]:
    """The members of :data:`TARGETS` that have an operation of the opcode table."""
    return _AVAILABLE.get(op, _EVERYWHERE)


def operations(isa: str) -> tuple[str, ...]:
    """Every operation of a processor, in table order. Raises TargetError."""
    target = model(isa)
    return tuple(op for op in OPCODES if target in targets_of(op))


def _table() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for op in OPCODES:
        if "f8f6f4" in op or op.startswith("v_cvt_scalef32_"):
            found[op] = frozenset({GFX950})
        elif _GFX90A_MATRIX.fullmatch(op):
            found[op] = frozenset({GFX90A})
        elif op.startswith(("v_mfma_", "v_smfmac_", "global_load_lds_", "scratch_load_lds_")):
            found[op] = _LATER
    for names, targets in (
        (_GFX90A_ONLY, frozenset({GFX90A})), (_GFX942_ONLY, frozenset({GFX942})),
        (_GFX950_ONLY, frozenset({GFX950})), (_GFX942_AND_LATER, _LATER),
    ):
        found |= dict.fromkeys(names.split(), targets)
    return found


_EVERYWHERE = frozenset(TARGETS)
_AVAILABLE = _table()
