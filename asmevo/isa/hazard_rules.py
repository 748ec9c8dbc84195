"""The wait-state table of gfx942, as data.

A rule says: between an instruction for which ``produces`` is not empty and one for which
``consumes`` shares a register with it, ``states`` wait states must pass (CDNA3 ISA, "Manually
Inserted Wait States"; where the document is silent or looser, what LLVM's hazard recogniser
inserts, except where hand-written production kernels rely on less).

Not checked, on purpose: VALU writes VCC or an SGPR mask -> carry-in or ``v_cndmask`` selector (the
ISA asks for none); f32 matrix result -> XDL SrcC overlap (the sources disagree); matrix result
overwritten by another matrix operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.matrix_timing import MatrixClass, matrix_class, passes
from asmevo.isa.parse import parse
from asmevo.isa.registers import (
    ALL_AGPR_MASK,
    ALL_VGPR_MASK,
    EXEC_MASK,
    M0_MASK,
    MODE_MASK,
    VCC_MASK,
    mask,
)

_VECTOR = ALL_VGPR_MASK | ALL_AGPR_MASK
# SGPRs, FLAT_SCRATCH, XNACK_MASK and VCC.
_SCALAR = mask(0, 108)
_VALU = frozenset({Unit.VALU, Unit.TRANS, Unit.MFMA})
_MEMORY = frozenset({Unit.VMEM, Unit.FLAT, Unit.LDS})
_LANE_READS = frozenset({"v_readlane_b32", "v_readfirstlane_b32"})
_LANE_OPS = _LANE_READS | {"v_writelane_b32"}
_LANE_SELECTS = frozenset({"v_readlane_b32", "v_writelane_b32"})
_CARRY_IN = ("v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32")
_HWREG_MODE, _VSKIP_BIT = 1, 28

Select = Callable[[Instruction], int]


@dataclass(frozen=True, slots=True)
class Rule:
    """``states`` is a number, or depends on the producer."""

    kind: str
    produces: Select
    consumes: Select
    states: int | Callable[[Instruction], int]


@dataclass(frozen=True, slots=True)
class HazardFacts:
    """One instruction's part in the rules: (rule, registers, wait states) and rule -> registers."""

    produced: tuple[tuple[int, int, int], ...]
    consumed: tuple[tuple[int, int], ...]
    interest: int


def _is_valu(i: Instruction) -> bool:
    return i.unit in _VALU


def _registers(operand: Operand) -> int:
    return mask(operand.first, operand.count) if operand.count else 0


def _valu_writes(registers: int) -> Select:
    return lambda i: i.writes & registers if _is_valu(i) and i.unit is not Unit.MFMA else 0


def _constants(i: Instruction) -> int:
    """Scalar registers a VALU operation reads as data, lane masks excluded."""
    if not _is_valu(i) or i.op in _LANE_SELECTS:
        return 0
    sources = i.operands[1:]
    if i.op == "v_cndmask_b32":
        sources = i.operands[1:3]
    elif i.op in _CARRY_IN:
        sources = i.operands[2:4]
    return _union(o for o in sources if o.kind is OperandKind.REGISTER) & i.reads & _SCALAR


def _union(operands: Iterable[Operand]) -> int:
    registers = 0
    for operand in operands:
        registers |= _registers(operand)
    return registers


def _lane_select(i: Instruction) -> int:
    return _registers(i.operands[2]) & _SCALAR if i.op in _LANE_SELECTS else 0


def _zero_flags(i: Instruction) -> int:
    if not _is_valu(i):
        return 0
    return _union(o for o in i.operands if o.text.endswith(("vccz", "execz")))


def _cmpx(i: Instruction) -> int:
    return EXEC_MASK if i.op.startswith("v_cmpx_") else 0


def _exec_constant(i: Instruction) -> int:
    return _union(i.operands) & EXEC_MASK if _is_valu(i) else 0


def _valu_reads(i: Instruction) -> int:
    return i.reads & _VECTOR if _is_valu(i) else 0


def _non_trans_reads(i: Instruction) -> int:
    return _valu_reads(i) if i.unit is not Unit.TRANS else 0


def _shifted(i: Instruction) -> int:
    """Results that leave their natural bits: SDWA, the destination bit of op_sel, high halves."""
    if i.unit is not Unit.VALU:
        return 0
    select = i.modifier("op_sel")
    sources = len(i.operands) - 1
    shifted = (
        (i.encoding == "sdwa" and i.modifier("dst_sel") not in (None, "DWORD"))
        or (isinstance(select, tuple) and len(select) == sources + 1 and bool(select[-1]))
        or i.op == "v_fma_mixhi_f16")
    return i.writes & _VECTOR if shifted else 0


def _hwreg(*ops: str) -> Select:
    def select(i: Instruction) -> int:
        if i.op not in ops:
            return 0
        return next(1 << (o.value & 63) for o in i.operands if o.kind is not OperandKind.REGISTER)
    return select


def _m0_users(i: Instruction) -> int:
    if i.unit is Unit.MESSAGE or i.unit in _MEMORY:
        return i.reads & M0_MASK
    return 0


def _wide_store_data(i: Instruction) -> int:
    if i.unit not in (Unit.VMEM, Unit.FLAT) or not (i.is_store or i.is_atomic):
        return 0
    if i.op.startswith("buffer_"):
        data, offset = i.operands[0], i.operands[3]
        if offset.kind is OperandKind.REGISTER:
            return 0
    else:
        data = i.operands[1 if i.is_store or i.modifier("sc0") is None else 2]
    return _registers(data) if data.count >= 3 else 0


def _is_dot(i: Instruction) -> bool:
    return i.op.startswith("v_dot")


def _dot_ab(i: Instruction) -> int:
    return _union(i.operands[1:3]) & _VECTOR


def _vskip_write(i: Instruction) -> int:
    if i.op == "s_setvskip":
        return MODE_MASK
    if i.op in ("s_setreg_b32", "s_setreg_imm32_b32"):
        field = i.operands[0].value
        low, width = field >> 6 & 31, (field >> 11 & 31) + 1
        if field & 63 == _HWREG_MODE and low <= _VSKIP_BIT < low + width:
            return MODE_MASK
    return 0


def _by_passes(two: int, four: int, eight: int, sixteen: int) -> Callable[[Instruction], int]:
    table = {2: two, 4: four, 8: eight, 16: sixteen}
    return lambda i: table[passes(i.op)]


def _result(kind: MatrixClass) -> Select:
    return lambda i: i.writes if i.unit is Unit.MFMA and matrix_class(i.op) is kind else 0


def _matrix_c(i: Instruction) -> int:
    """The accumulator input: SrcC of an MFMA, the destination of an SMFMAC."""
    if i.unit is not Unit.MFMA:
        return 0
    return _registers(i.operands[0 if i.op.startswith("v_smfmac_") else 3])


def _matrix_ab(i: Instruction) -> int:
    return _union(i.operands[1:3]) if i.unit is Unit.MFMA else 0


def _xdl_c(i: Instruction) -> int:
    if i.unit is Unit.MFMA and matrix_class(i.op) is MatrixClass.XDL:
        return _matrix_c(i)
    return 0


def _float_c(i: Instruction) -> int:
    if i.unit is Unit.MFMA and matrix_class(i.op) is not MatrixClass.XDL:
        return _matrix_c(i)
    return 0


def _valu_touches(i: Instruction) -> int:
    if i.unit is Unit.MFMA or not _is_valu(i):
        return 0
    return (i.reads | i.writes) & _VECTOR


def _ab_or_valu(i: Instruction) -> int:
    return _matrix_ab(i) | _valu_touches(i)


def _memory_reads(i: Instruction) -> int:
    return i.reads & _VECTOR if i.unit in _MEMORY else 0


def _memory_touches(i: Instruction) -> int:
    return (i.reads | i.writes) & _VECTOR if i.unit in _MEMORY else 0


def _ab_valu_memory(i: Instruction) -> int:
    return _ab_or_valu(i) | _memory_touches(i)


_F64_4, _F64_16 = MatrixClass.F64_4X4, MatrixClass.F64_16X16

RULES: tuple[Rule, ...] = (
    Rule("valu-sgpr-vmem", _valu_writes(_SCALAR),
         lambda i: i.reads & _SCALAR if i.unit in (Unit.VMEM, Unit.FLAT) else 0, 5),
    Rule("valu-sgpr-constant", _valu_writes(_SCALAR), _constants, 2),
    Rule("valu-lane-select", _valu_writes(_SCALAR), _lane_select, 4),
    Rule("valu-vcc-div-fmas", _valu_writes(VCC_MASK),
         lambda i: VCC_MASK if i.op.startswith("v_div_fmas") else 0, 4),
    Rule("valu-zero-flag", _valu_writes(VCC_MASK | EXEC_MASK), _zero_flags, 5),
    Rule("valu-readlane", _valu_writes(ALL_VGPR_MASK),
         lambda i: i.reads & ALL_VGPR_MASK if i.op in _LANE_READS else 0, 1),
    Rule("cmpx-lane", _cmpx, lambda i: EXEC_MASK if i.op in _LANE_OPS else 0, 4),
    Rule("cmpx-exec-constant", _cmpx, _exec_constant, 2),
    Rule("valu-dpp", _valu_writes(ALL_VGPR_MASK),
         lambda i: i.reads & ALL_VGPR_MASK if i.encoding == "dpp" else 0, 2),
    Rule("exec-dpp", _valu_writes(EXEC_MASK),
         lambda i: EXEC_MASK if i.encoding == "dpp" else 0, 5),
    Rule("exec-mfma", _valu_writes(EXEC_MASK),
         lambda i: EXEC_MASK if i.unit is Unit.MFMA else 0, 4),
    Rule("trans-valu", lambda i: i.writes & _VECTOR if i.unit is Unit.TRANS else 0,
         _non_trans_reads, 1),
    Rule("shifted-valu", _shifted, _valu_reads, 1),
    Rule("setreg-getreg", _hwreg("s_setreg_b32", "s_setreg_imm32_b32"),
         _hwreg("s_setreg_b32", "s_setreg_imm32_b32", "s_getreg_b32"), 2),
    Rule("salu-m0", lambda i: i.writes & M0_MASK if i.unit is Unit.SALU else 0, _m0_users, 1),
    Rule("store-data", _wide_store_data,
         lambda i: i.writes & ALL_VGPR_MASK if _is_valu(i) else 0, 2),
    Rule("vskip", _vskip_write,
         lambda i: MODE_MASK if i.unit in _VALU or i.unit in _MEMORY else 0, 2),
    Rule("dot-result", lambda i: i.writes if _is_dot(i) else 0,
         lambda i: _dot_ab(i) if _is_dot(i) else _valu_touches(i) | _memory_reads(i), 3),
    Rule("valu-mfma", _valu_writes(_VECTOR),
         lambda i: i.reads & _VECTOR if i.unit is Unit.MFMA else 0, 2),
    Rule("xdl-c", _result(MatrixClass.XDL), _matrix_c, _by_passes(3, 5, 9, 17)),
    Rule("xdl-result", _result(MatrixClass.XDL), _ab_valu_memory, _by_passes(5, 7, 11, 19)),
    Rule("xdl-c-overwritten", _xdl_c,
         lambda i: i.writes & _VECTOR if _is_valu(i) and i.unit is not Unit.MFMA else 0,
         _by_passes(1, 3, 7, 15)),
    Rule("f32-c", _result(MatrixClass.F32), _float_c, _by_passes(2, 4, 8, 16)),
    Rule("f32-result", _result(MatrixClass.F32), _ab_valu_memory, _by_passes(4, 6, 10, 18)),
    Rule("f64-4x4-c", _result(_F64_4), _matrix_c, 4),
    Rule("f64-4x4-result", _result(_F64_4), _ab_or_valu, 6),
    Rule("f64-4x4-memory", _result(_F64_4), _memory_touches, 9),
    Rule("f64-16x16-c", _result(_F64_16), _matrix_c, 9),
    Rule("f64-16x16-result", _result(_F64_16), _ab_or_valu, 11),
    Rule("f64-16x16-memory", _result(_F64_16), _memory_touches, 18),
    Rule("f64-mfma-fma", lambda i: EXEC_MASK if i.op.startswith("v_mfma_f64_") else 0,
         lambda i: EXEC_MASK if i.op == "v_fma_f64" else 0, 2),
)

# A result fed to SrcC of the same registers is forwarded: wait states by passes of the producer.
FORWARDED_C = {"xdl-c": {2: 2, 4: 0, 8: 0, 16: 0}, "f32-c": {2: 2, 4: 0, 8: 0, 16: 0},
               "f64-16x16-c": {8: 0}}


def forwarded_states(rule: Rule, producer: Instruction, consumer: Instruction) -> int | None:
    """Wait states where the accumulator input is exactly the producer's result, else ``None``."""
    table = FORWARDED_C.get(rule.kind)
    if table is None or _matrix_c(consumer) != producer.writes:
        return None
    return table[passes(producer.op)]


@lru_cache(maxsize=1 << 16)
def hazard_facts(text: str) -> HazardFacts:
    """The rules an instruction takes part in. Raises what :func:`asmevo.isa.parse.parse` does."""
    i = parse(text)
    produced, consumed, interest = [], [], 0
    for number, rule in enumerate(RULES):
        registers = rule.produces(i)
        if registers:
            states = rule.states if isinstance(rule.states, int) else rule.states(i)
            produced.append((number, registers, states))
        registers = rule.consumes(i)
        if registers:
            consumed.append((number, registers))
            interest |= registers
    return HazardFacts(tuple(produced), tuple(consumed), interest)
