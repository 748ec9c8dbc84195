"""What an instruction gives to and takes from a wait-state rule.

Every function maps an instruction to the set of registers by which it takes part in a rule; zero
when it does not. Hazards that are not about a register use one that stands for the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.matrix_timing import MatrixClass, matrix_class
from asmevo.isa.registers import (
    ALL_AGPR_MASK,
    ALL_VGPR_MASK,
    EXEC_MASK,
    M0_MASK,
    MODE_MASK,
    VCC_MASK,
    mask,
)

VECTOR = ALL_VGPR_MASK | ALL_AGPR_MASK
# SGPRs, FLAT_SCRATCH, XNACK_MASK and VCC.
SCALAR = mask(0, 108)
_VALU = frozenset({Unit.VALU, Unit.TRANS, Unit.MFMA})
_MEMORY = frozenset({Unit.VMEM, Unit.FLAT, Unit.LDS})
_LANE_READS = frozenset({"v_readlane_b32", "v_readfirstlane_b32"})
_LANE_OPS = _LANE_READS | {"v_writelane_b32"}
_LANE_SELECTS = frozenset({"v_readlane_b32", "v_writelane_b32"})
_CARRY_IN = ("v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32")
_BYTE_RESULTS = (
    "v_cvt_sr_fp8_", "v_cvt_sr_bf8_", "v_cvt_scalef32_sr_fp8_", "v_cvt_scalef32_sr_bf8_",
    "v_cvt_scalef32_pk_fp4_")
_HWREG_MODE, _VSKIP_BIT = 1, 28

Select = Callable[[Instruction], int]


def _is_valu(i: Instruction) -> bool:
    return i.unit in _VALU


def _registers(operand: Operand) -> int:
    return mask(operand.first, operand.count) if operand.count else 0


def valu_writes(registers: int) -> Select:
    return lambda i: i.writes & registers if _is_valu(i) and i.unit is not Unit.MFMA else 0


def constants(i: Instruction) -> int:
    """Scalar registers a VALU operation reads as data, lane masks excluded."""
    if not _is_valu(i) or i.op in _LANE_SELECTS:
        return 0
    sources = i.operands[1:]
    if i.op == "v_cndmask_b32":
        sources = i.operands[1:3]
    elif i.op in _CARRY_IN:
        sources = i.operands[2:4]
    return _union(o for o in sources if o.kind is OperandKind.REGISTER) & i.reads & SCALAR


def _union(operands: Iterable[Operand]) -> int:
    registers = 0
    for operand in operands:
        registers |= _registers(operand)
    return registers


def scalar_address(i: Instruction) -> int:
    return i.reads & SCALAR if i.unit in (Unit.VMEM, Unit.FLAT) else 0


def div_fmas(i: Instruction) -> int:
    return VCC_MASK if i.op.startswith("v_div_fmas") else 0


def lane_reads(i: Instruction) -> int:
    return i.reads & ALL_VGPR_MASK if i.op in _LANE_READS else 0


def lane_ops(i: Instruction) -> int:
    return EXEC_MASK if i.op in _LANE_OPS else 0


def permlane_reads(i: Instruction) -> int:
    return i.reads & ALL_VGPR_MASK if i.op.startswith("v_permlane") else 0


def permlane(i: Instruction) -> int:
    return EXEC_MASK if i.op.startswith("v_permlane") else 0


def dpp_reads(i: Instruction) -> int:
    return i.reads & ALL_VGPR_MASK if i.encoding == "dpp" else 0


def dpp(i: Instruction) -> int:
    return EXEC_MASK if i.encoding == "dpp" else 0


def matrix(i: Instruction) -> int:
    return EXEC_MASK if i.unit is Unit.MFMA else 0


def matrix_reads(i: Instruction) -> int:
    return i.reads & VECTOR if i.unit is Unit.MFMA else 0


def trans_result(i: Instruction) -> int:
    return i.writes & VECTOR if i.unit is Unit.TRANS else 0


def lane_select(i: Instruction) -> int:
    return _registers(i.operands[2]) & SCALAR if i.op in _LANE_SELECTS else 0


def zero_flags(i: Instruction) -> int:
    if not _is_valu(i):
        return 0
    return _union(o for o in i.operands if o.text.endswith(("vccz", "execz")))


def cmpx(i: Instruction) -> int:
    return EXEC_MASK if i.op.startswith("v_cmpx_") else 0


def exec_constant(i: Instruction) -> int:
    return _union(i.operands) & EXEC_MASK if _is_valu(i) else 0


def valu_reads(i: Instruction) -> int:
    return i.reads & VECTOR if _is_valu(i) else 0


def non_trans_reads(i: Instruction) -> int:
    return valu_reads(i) if i.unit is not Unit.TRANS else 0


def shifted(i: Instruction) -> int:
    """Results that leave their natural bits: SDWA, the destination bits of op_sel, high halves.

    Stochastic rounding to eight bits selects the byte by two bits of op_sel; to four bits, LLVM
    takes every byte for shifted.
    """
    if i.unit is not Unit.VALU:
        return 0
    select = i.modifier("op_sel")
    moved = (
        (i.encoding == "sdwa" and i.modifier("dst_sel") not in (None, "DWORD"))
        or i.op == "v_fma_mixhi_f16" or i.op.startswith("v_cvt_scalef32_sr_pk_fp4_"))
    if isinstance(select, tuple) and len(select) >= len(i.operands):
        moved |= any(select[-2:] if i.op.startswith(_BYTE_RESULTS) else select[-1:])
    return i.writes & VECTOR if moved else 0


def hwreg(*ops: str) -> Select:
    def select(i: Instruction) -> int:
        if i.op not in ops:
            return 0
        return next(1 << (o.value & 63) for o in i.operands if o.kind is not OperandKind.REGISTER)
    return select


def salu_m0(i: Instruction) -> int:
    return i.writes & M0_MASK if i.unit is Unit.SALU else 0


def m0_users(i: Instruction) -> int:
    if i.unit is Unit.MESSAGE or i.unit in _MEMORY:
        return i.reads & M0_MASK
    return 0


def wide_store_data(i: Instruction) -> int:
    if i.unit not in (Unit.VMEM, Unit.FLAT) or not (i.is_store or i.is_atomic):
        return 0
    if i.op.startswith(("buffer_", "tbuffer_")):
        data, offset = i.operands[0], i.operands[3]
        if offset.kind is OperandKind.REGISTER:
            return 0
    else:
        returns = i.is_atomic and bool(_registers(i.operands[0]) & i.writes)
        data = i.operands[2 if returns else 1]
    return _registers(data) if data.count >= 3 else 0


def _is_dot(i: Instruction) -> bool:
    return i.op.startswith("v_dot")


def dot_result(i: Instruction) -> int:
    return i.writes if _is_dot(i) else 0


def dot_users(i: Instruction) -> int:
    """One dot product's accumulator may be the result of another at once."""
    if _is_dot(i):
        return _union(i.operands[1:3]) & VECTOR
    return valu_touches(i) | memory_reads(i)


def valu_overwrites(i: Instruction) -> int:
    """Vector registers written by a VALU operation that is no matrix operation."""
    return i.writes & VECTOR if _is_valu(i) and i.unit is not Unit.MFMA else 0


def valu_or_matrix_writes(i: Instruction) -> int:
    return i.writes & ALL_VGPR_MASK if _is_valu(i) else 0


def vector_state(i: Instruction) -> int:
    return MODE_MASK if i.unit in _VALU or i.unit in _MEMORY else 0


def vskip_write(i: Instruction) -> int:
    if i.op == "s_setvskip":
        return MODE_MASK
    if i.op in ("s_setreg_b32", "s_setreg_imm32_b32"):
        field = i.operands[0].value
        low, width = field >> 6 & 31, (field >> 11 & 31) + 1
        if field & 63 == _HWREG_MODE and low <= _VSKIP_BIT < low + width:
            return MODE_MASK
    return 0


def matrix_c(i: Instruction) -> int:
    """The accumulator input: SrcC of an MFMA, the destination of an SMFMAC."""
    if i.unit is not Unit.MFMA:
        return 0
    return _registers(i.operands[0 if i.op.startswith("v_smfmac_") else 3])


def matrix_ab(i: Instruction) -> int:
    """The inputs besides the accumulator: A, B, the index of an SMFMAC and scales."""
    if i.unit is not Unit.MFMA:
        return 0
    if i.op.startswith("v_smfmac_"):
        return _union(i.operands[1:])
    return _union((*i.operands[1:3], *i.operands[4:]))


def matrix_result(isa: str, *kinds: MatrixClass) -> Select:
    return lambda i: i.writes if _is_matrix(i, isa, kinds) else 0


def matrix_c_of(isa: str, *kinds: MatrixClass) -> Select:
    return lambda i: matrix_c(i) if _is_matrix(i, isa, kinds) else 0


def _is_matrix(i: Instruction, isa: str, kinds: tuple[MatrixClass, ...]) -> bool:
    return i.unit is Unit.MFMA and matrix_class(i.op, isa) in kinds


def f64_matrix(i: Instruction) -> int:
    return EXEC_MASK if i.op.startswith("v_mfma_f64_") else 0


def f64_fma(i: Instruction) -> int:
    return EXEC_MASK if i.op in ("v_fma_f64", "v_fmac_f64") else 0


def valu_touches(i: Instruction) -> int:
    if i.unit is Unit.MFMA or not _is_valu(i):
        return 0
    return (i.reads | i.writes) & VECTOR


def ab_or_valu(i: Instruction) -> int:
    return matrix_ab(i) | valu_touches(i)


def ab_or_valu_reads(i: Instruction) -> int:
    return matrix_ab(i) | (valu_reads(i) if i.unit is not Unit.MFMA else 0)


def memory_reads(i: Instruction) -> int:
    return i.reads & VECTOR if i.unit in _MEMORY else 0


def memory_touches(i: Instruction) -> int:
    return (i.reads | i.writes) & VECTOR if i.unit in _MEMORY else 0


def ab_valu_memory(i: Instruction) -> int:
    return ab_or_valu(i) | memory_touches(i)
