"""Runs of matrix operations within blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, Unit
from asmevo.propose.rule import RuleContext


@dataclass(frozen=True, slots=True)
class MatrixRun:
    """``count`` matrix operations from ``first`` to ``last``, in the block ``start`` to ``stop``
    (exclusive)."""

    start: int
    stop: int
    first: int
    last: int
    count: int


def matrix_runs(context: RuleContext, apart: int, smallest: int) -> Iterator[MatrixRun]:
    """Runs of at least ``smallest`` matrix operations that a profile has seen executed, with fewer
    than ``apart`` instructions that do other work between two of them."""
    instructions = context.program.instructions
    for block in context.cfg.blocks:
        if block.start in context.cold:
            continue
        run: list[int] = []
        between = 0
        for index in range(block.start, block.end + 1):
            i = instructions[index] if index < block.end else None
            if i is None or between >= apart:
                if len(run) >= smallest:
                    yield MatrixRun(block.start, block.end, run[0], run[-1], len(run))
                run = []
            if i is not None and i.unit is Unit.MFMA and index not in context.indexed:
                run.append(index)
                between = 0
            elif i is not None:
                between += _works(i)


def _works(i: Instruction) -> bool:
    return i.wait is None and i.unit is not Unit.NOP and i.op != "s_setprio"
