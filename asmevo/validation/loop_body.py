"""The straight-line body of a kernel's main loop."""

from __future__ import annotations

from collections.abc import Sequence

from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program

_LEFT_OUT = (Unit.BRANCH, Unit.END)


def loop_body(program: Program, issued: Sequence[int]) -> tuple[Instruction, ...]:
    """The innermost loop that issues the most matrix operations, without its branches.

    ``issued[i]`` is how often instruction *i* issued. Blocks of the loop that run less often than
    half of its header are left out, so that what remains is one way through it; nothing without a
    loop that has a matrix operation.
    """
    cfg = Cfg.of(program)

    def matrix_operations(blocks: frozenset[int]) -> int:
        return sum(issued[i] for block in blocks
                   for i in range(cfg.blocks[block].start, cfg.blocks[block].end)
                   if program.instructions[i].unit is Unit.MFMA)

    loops = [loop for loop in cfg.loops()
             if not any(other.blocks < loop.blocks for other in cfg.loops())]
    if not loops:
        return ()
    main = max(loops, key=lambda loop: matrix_operations(loop.blocks))
    if not matrix_operations(main.blocks):
        return ()
    rounds = issued[cfg.blocks[main.header].start]
    blocks = (cfg.blocks[number] for number in sorted(main.blocks))
    return tuple(program.instructions[i] for block in blocks if 2 * issued[block.start] > rounds
                 for i in range(block.start, block.end)
                 if program.instructions[i].unit not in _LEFT_OUT)
