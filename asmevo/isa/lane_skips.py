"""Jumps over code that does nothing where no lane is on."""

from __future__ import annotations

from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import VGPR0

_SCALARS = (1 << VGPR0) - 1
_MEMORY = frozenset({Unit.VMEM, Unit.FLAT, Unit.LDS})
_VECTOR = frozenset({Unit.VALU, Unit.TRANS})
# What ignores EXEC (CDNA3 ISA, 4.3 and 7.1), matrix operations and their registers among it.
_ALWAYS = ("v_mfma", "v_smfmac", "v_accvgpr", "v_readlane", "v_readfirstlane", "v_writelane",
           "v_permlane", "v_swap")


def skips_nothing(program: Program, index: int) -> bool:
    """Whether an ``s_cbranch_execz`` leads forwards over vector operations and accesses alone, so
    that all is the same without it."""
    target = program.targets[index]
    return (program.instructions[index].op == "s_cbranch_execz" and target is not None
            and target > index and all(
                _does_nothing(program.instructions[k]) or (
                    program.instructions[k].op == "s_cbranch_execz"
                    and index < (program.targets[k] or 0) <= target
                    and skips_nothing(program, k))
                for k in range(index + 1, target)))


def _does_nothing(i: Instruction) -> bool:
    """Without any lane on."""
    if i.op in ("s_nop", "s_waitcnt"):
        return True
    if i.writes & _SCALARS or i.op.startswith(_ALWAYS):
        return False
    if i.unit in _VECTOR:
        return not i.accesses_memory
    return i.unit in _MEMORY and (i.is_load or i.is_store or i.is_atomic) and (
        "gws" not in i.op)
