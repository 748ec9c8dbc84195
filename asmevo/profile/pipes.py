"""How long an instruction of a wave keeps the pipe that executes it, on a gfx9 compute unit.

The figures are those of the architecture, not of a measured machine: they bound what a schedule can
reach, and a cycle model or a profiler says what happened.
"""

from __future__ import annotations

from enum import StrEnum

from asmevo.isa.access_width import access_bytes
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.matrix_timing import MatrixClass, matrix_class, passes
from asmevo.isa.targets import model

# Four SIMDs take turns to issue, so each has one turn in four clk (AMD CDNA3 white paper).
TURN = 4
WAVE = 64


class Pipe(StrEnum):
    """What executes instructions, each kind at its own pace."""

    VALU = "valu"
    MATRIX = "matrix"
    LDS = "lds"
    VMEM = "vmem"
    SCALAR = "scalar"
    BRANCH = "branch"


# SIMDs that share one pipe: LDS serves pairs, vector memory the compute unit (CDNA3 white paper).
SHARED_BY = {Pipe.VALU: 1, Pipe.MATRIX: 1, Pipe.LDS: 2, Pipe.VMEM: 4, Pipe.SCALAR: 4,
             Pipe.BRANCH: 4}
_VALU_CLK = 4  # 64 lanes on 16 (CDNA3 white paper)
_QUARTER_RATE_CLK = 16  # v_exp and v_rcp: 16.0 measured (tingqli/pyhip); LLVM, WriteTrans32
_PASS_CLK = 4  # AMD matrix instruction calculator
_PAIR_BYTES_PER_CLK = 64  # LDS, a pair of SIMDs (CDNA3 white paper)
_VL1D_BYTES_PER_CLK = 64  # the smaller of the published figures, 64 and 128
_ADDRESS_CLK = 4  # 16 addresses a clk
# 32-bit integer multiplies (LLVM SISchedule.td, WriteIntMul).
_QUARTER_RATE = frozenset({"v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u64_u32",
                           "v_mad_i64_i32"})
_VECTOR = {Unit.LDS: Pipe.LDS, Unit.VMEM: Pipe.VMEM, Unit.FLAT: Pipe.VMEM}
_SCALAR = frozenset({Unit.SALU, Unit.SMEM})


def pipe_times(instruction: Instruction, isa: str) -> dict[Pipe, int]:
    """Pipes that one wave's instruction keeps busy, and for how many clk.

    All 64 lanes are taken to be on, accesses to be coalesced and free of bank conflicts. Empty for
    instructions that only the instruction buffer sees, such as ``s_waitcnt``.
    """
    unit = instruction.unit
    if unit is Unit.MFMA:
        clk = _PASS_CLK * passes(instruction, model(isa))
        beside = matrix_class(instruction.op, model(isa)) is MatrixClass.XDL
        # Beside an XDL operation the vector ALU works on; f32 and f64 ones occupy both.
        return {Pipe.VALU: _VALU_CLK if beside else clk, Pipe.MATRIX: clk}
    if unit is Unit.TRANS or instruction.op in _QUARTER_RATE:
        return {Pipe.VALU: _QUARTER_RATE_CLK}
    if unit is Unit.VALU:
        return {Pipe.VALU: _VALU_CLK}
    if unit in _VECTOR and instruction.accesses_memory:
        rate = _PAIR_BYTES_PER_CLK if unit is Unit.LDS else _VL1D_BYTES_PER_CLK
        clk = WAVE * (access_bytes(instruction) or _ADDRESS_CLK) // rate
        return {_VECTOR[unit]: max(clk, _ADDRESS_CLK)}
    if unit in _SCALAR:
        return {Pipe.SCALAR: 1}
    return {Pipe.BRANCH: 1} if unit is Unit.BRANCH else {}
