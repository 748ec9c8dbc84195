"""What the cycle model needs to know of each instruction of a program."""

from __future__ import annotations

from typing import Any

import asmevo_core

from asmevo.device.device import UnsupportedError
from asmevo.device.emulator.timing_parameters import LINE_BYTES, TURN, IssueParameters
from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.matrix_timing import MatrixClass, matrix_class, passes
from asmevo.isa.program import Program
from asmevo.isa.targets import GFX942

_NO_WAIT = 0xFF

_CLASSES = {
    Unit.SALU: asmevo_core.IssueClass.SALU,
    Unit.SMEM: asmevo_core.IssueClass.SMEM,
    Unit.VALU: asmevo_core.IssueClass.VALU,
    Unit.TRANS: asmevo_core.IssueClass.VALU,
    Unit.MFMA: asmevo_core.IssueClass.VALU,
    Unit.VMEM: asmevo_core.IssueClass.VMEM,
    Unit.FLAT: asmevo_core.IssueClass.VMEM,
    Unit.LDS: asmevo_core.IssueClass.LDS,
    Unit.BRANCH: asmevo_core.IssueClass.BRANCH,
    Unit.WAIT: asmevo_core.IssueClass.WAIT,
    Unit.NOP: asmevo_core.IssueClass.NOP,
    Unit.BARRIER: asmevo_core.IssueClass.BARRIER,
    Unit.END: asmevo_core.IssueClass.END,
}
_UNTIMED_OPERATIONS = frozenset({"ds_nop"})
# Global wave sync belongs to several workgroups at once.
_UNTIMED_PREFIXES = ("s_scratch_", "ds_gws_")

# Operations on caches: what they do to the model's.
_CACHE_OPERATIONS = {
    "buffer_wbl2": asmevo_core.AccessKind.WRITE_BACK,
    "buffer_inv": asmevo_core.AccessKind.INVALIDATE,
    "s_dcache_wb": asmevo_core.AccessKind.WRITE_BACK,
    "s_dcache_inv": asmevo_core.AccessKind.INVALIDATE,
    "s_dcache_inv_vol": asmevo_core.AccessKind.INVALIDATE,
    "s_dcache_wb_vol": asmevo_core.AccessKind.WRITE_BACK,
}
# Of Unit.MESSAGE: a wave sleeps, or changes its priority.
_SLEEP = "s_sleep"
_PRIORITY = "s_setprio"
_NO_PRIORITY = 0xFF
_SLEEP_LIMIT = 128  # SIMM16[6:0] (CDNA3 ISA, "S_SLEEP")

# Packed f32 operations do not run beside the matrix pipe (PYHIP).
_NOT_BESIDE_MATRIX = frozenset({"v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"})

# 32-bit integer multiplies (LLVM SISchedule.td, WriteQuarterRate32).
_QUARTER_RATE = frozenset({"v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u64_u32",
                           "v_mad_i64_i32"})


def timing_table(program: Program, issue: IssueParameters) -> list[Any]:
    """An `asmevo_core.InstructionTiming` an instruction.

    Raises UnsupportedError naming the first instruction that has no timing.
    """
    return [_instruction(instruction, offset, end, uses, issue)
            for instruction, offset, end, uses in
            zip(program.instructions, program.offsets, program.offsets[1:],
                _uses_of_matrix_results(program), strict=False)]


def _uses_of_matrix_results(program: Program) -> list[bool]:
    """Whether each instruction uses the result of the matrix operation before it in the code.

    Across a branch or its target nothing is known of the operation, and it is far enough away.
    """
    leaders = {*program.labels, *(target for target in program.targets if target is not None)}
    uses = []
    last: Instruction | None = None
    for index, instruction in enumerate(program.instructions):
        if index in leaders:
            last = None
        uses.append(last is not None and bool(instruction.reads & last.writes))
        if instruction.unit is Unit.MFMA:
            last = instruction
        elif instruction.is_branch:
            last = None
    return uses


def _instruction(instruction: Instruction, offset: int, end: int, uses_matrix: bool,
                 issue: IssueParameters) -> Any:
    _refuse_untimed(instruction)
    busy, matrix = TURN, 0
    if instruction.unit is Unit.MFMA:
        busy, matrix = _matrix(instruction, issue)
    elif instruction.op in _QUARTER_RATE:
        busy = issue.integer_multiply
    elif instruction.unit is Unit.VALU:
        busy = issue.valu
    elif instruction.unit is Unit.TRANS:
        busy = issue.transcendental
    elif instruction.unit is Unit.NOP:
        busy = TURN * _wait_states(instruction)
    elif instruction.op == _SLEEP:
        busy = max(TURN, issue.sleep * (_immediate(instruction) % _SLEEP_LIMIT))
    wait = instruction.wait
    # Eight bytes that straddle two 8-byte fetch units arrive later.
    misaligned = end - offset == 8 and offset % 8 == 4
    return asmevo_core.InstructionTiming(
        _issue_class(instruction),
        busy=busy,
        vmcnt=instruction.vmcnt,
        lgkmcnt=instruction.lgkmcnt,
        wait_vmcnt=_NO_WAIT if wait is None or wait.vmcnt is None else wait.vmcnt,
        wait_lgkmcnt=_NO_WAIT if wait is None or wait.lgkmcnt is None else wait.lgkmcnt,
        fetch_debt=issue.misaligned_fetch if misaligned else 0,
        access=_access(instruction),
        matrix=matrix,
        beside_matrix=instruction.op not in _NOT_BESIDE_MATRIX,
        priority=(_immediate(instruction) & 3 if instruction.op == _PRIORITY
                  else _NO_PRIORITY),
        code_line=offset // LINE_BYTES,
        uses_matrix=uses_matrix,
    )


def matrix_clk(instruction: Instruction, issue: IssueParameters) -> int:
    """clk that an instruction takes the matrix pipe; 0 for all but matrix operations."""
    if instruction.unit is not Unit.MFMA:
        return 0
    return issue.matrix_pass * passes(instruction, GFX942)


def is_byte_matrix(instruction: Instruction) -> bool:
    """Whether it is a matrix operation on 8-bit elements."""
    return instruction.unit is Unit.MFMA and instruction.op.endswith(("_i8", "8_fp8", "8_bf8"))


def _matrix(instruction: Instruction, issue: IssueParameters) -> tuple[int, int]:
    """clk that a matrix operation takes the ALU and the matrix pipe.

    The ALU is free again while an XDL operation goes on, not during one of f32 or f64.
    """
    clk = matrix_clk(instruction, issue)
    xdl = matrix_class(instruction.op, GFX942) is MatrixClass.XDL
    return (min(issue.matrix_start, clk) if xdl else clk), clk


def _refuse_untimed(instruction: Instruction) -> None:
    unit = instruction.unit
    supported = (
        (unit in _CLASSES or instruction.op in (_SLEEP, _PRIORITY))
        and instruction.op not in _UNTIMED_OPERATIONS
        and not instruction.op.startswith(_UNTIMED_PREFIXES)
        and (unit not in (Unit.SMEM, Unit.VMEM, Unit.FLAT) or instruction.accesses_memory
             or instruction.op in _CACHE_OPERATIONS)
    )
    if not supported:
        raise UnsupportedError(f"the cycle model has no timing for '{instruction.text}'")


def _issue_class(instruction: Instruction) -> asmevo_core.IssueClass:
    if instruction.op == _SLEEP:
        return asmevo_core.IssueClass.NOP
    if instruction.op == _PRIORITY:
        return asmevo_core.IssueClass.WAIT  # the instruction buffer's, like a wait for nothing
    return _CLASSES[instruction.unit]


def _access(instruction: Instruction) -> asmevo_core.AccessKind:
    if instruction.op in _CACHE_OPERATIONS:
        return _CACHE_OPERATIONS[instruction.op]
    if instruction.is_atomic:
        return asmevo_core.AccessKind.ATOMIC
    if instruction.is_store:
        return asmevo_core.AccessKind.STORE
    if instruction.unit is Unit.VMEM and ("lds" in instruction.op.split("_")
                                          or instruction.modifier("lds") is not None):
        return asmevo_core.AccessKind.LOAD_TO_LDS
    return asmevo_core.AccessKind.LOAD


def _wait_states(instruction: Instruction) -> int:
    """``s_nop N`` gives N + 1 wait states (CDNA3 ISA, "SOPP")."""
    states = _immediate(instruction)
    if not 0 <= states < 16:
        raise UnsupportedError(f"the cycle model has no timing for '{instruction.text}'")
    return states + 1


def _immediate(instruction: Instruction) -> int:
    operand = instruction.operands[0]
    if operand.kind is not OperandKind.CONSTANT:
        raise UnsupportedError(f"the cycle model has no timing for '{instruction.text}'")
    return operand.value
