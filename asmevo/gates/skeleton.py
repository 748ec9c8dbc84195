"""What of a kernel decides where the launch has a say, so that most candidates need no new look.

`LaunchUses` and `OperandUses` follow values through the registers that lead to branches, masks,
selections and operands. An edit that leaves every instruction alone that writes one of these
registers, decides or jumps, and their order, cannot change what is found: scheduling matrix
operations, waits and wait states are most of what proposers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from asmevo.gates.launch_uses import NARROWING
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.registers import EVERYTHING, EXEC_MASK, M0_MASK, MODE_MASK, SGPR_LIMIT

_SCALARS = (1 << SGPR_LIMIT) - 1
# What else instructions do depends on these.
_STATE = EXEC_MASK | MODE_MASK | M0_MASK

Skeleton = tuple[tuple[str, int], ...]


def skeleton(program: Program, followed: int) -> Skeleton:
    """Texts of the instructions that matter, and where their branches go, counted in these.

    ``followed`` are the registers through which values were followed.
    """
    if any(_indexes(i.op) for i in program.instructions):
        # Any vector operation may write any vector register.
        followed = EVERYTHING
    kept: list[int] = []
    position: list[int] = []
    for index, i in enumerate(program.instructions):
        position.append(len(kept))
        if i.writes & followed or _decides(i.text):
            kept.append(index)
    instructions = program.instructions
    return tuple((_text(instructions[k]), _target(program, k, position)) for k in kept)


@lru_cache(maxsize=1 << 12)
def _indexes(op: str) -> bool:
    return op.startswith("s_set_gpr_idx") or "movrel" in op


def _target(program: Program, index: int, position: Sequence[int]) -> int:
    target = program.targets[index]
    return -1 if target is None else position[target]


def _text(i: Instruction) -> str:
    """Branch distances change with code between; where they go is told apart from it."""
    return i.op if i.is_branch and i.op.startswith(("s_branch", "s_cbranch")) else i.text


@lru_cache(maxsize=1 << 16)
def _decides(text: str) -> bool:
    i = parse(text)
    return (i.is_branch or i.ends_program or i.unit in (Unit.SALU, Unit.SMEM, Unit.OPAQUE)
            or (i.unit is Unit.LDS and i.is_store)
            or bool(i.writes & _STATE) or bool(i.reads & _SCALARS) or i.op.startswith(NARROWING))
