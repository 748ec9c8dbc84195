"""Marks loads whose data is not read again."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.instruction import Instruction, Unit
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.rule import Rule, RuleContext

# Any of them decides already which caches an access goes through.
_CACHE = ("sc0", "sc1", "nt", "lds")


class CacheHints(Rule):
    """Lines that a launch reads once need no place in the caches: ``nt`` lets them go first.

    What a load sees does not depend on it (LLVM "User Guide for AMDGPU Backend", memory model
    gfx942). Whether lines are read once is not known here: all vector loads are marked, then those
    outside of loops or inside of them, then the hottest one by one. Cycle models do not know the
    hint, and nothing is proposed where all profiles are of such: no figure of theirs could show
    what it gains.
    """

    name = "cache-hints"
    direction = Direction.MEMORY_ACCESS

    def __init__(self, individual: int = 8) -> None:
        self._individual = individual

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        if context.is_modelled:
            return
        # Gates know a violation that the original has by the text of both instructions.
        known = {index for v in (*context.preview.missing, *context.preview.hazards)
                 for index in (v.producer, v.consumer)}
        loads = [index for index, i in enumerate(context.program.instructions)
                 if _is_plain(i) and index not in context.cold and index not in known]
        if not loads:
            return
        yield self._marked(context, loads)
        looped = {index for loop in context.cfg.loops() for number in loop.blocks
                  for index in range(context.cfg.blocks[number].start,
                                     context.cfg.blocks[number].end)}
        inside = [index for index in loads if index in looped]
        if 0 < len(inside) < len(loads):
            yield self._marked(context, inside)
            yield self._marked(context, [index for index in loads if index not in looped])
        if len(loads) > 1:
            yield from context.by_weight(
                ((index,), self._marked(context, [index])) for index in loads)[:self._individual]

    def _marked(self, context: RuleContext, loads: list[int]) -> Proposal:
        rewrite = context.rewrite()
        for index in loads:
            rewrite.replace(index, f"{context.lines[index]} nt")
        return self.proposal(
            rewrite, f"{len(loads)} load(s) of lines that may not be read again leave the caches"
            " to others")


def _is_plain(i: Instruction) -> bool:
    return (i.is_load and not i.is_atomic and i.unit in (Unit.VMEM, Unit.FLAT)
            and "_load_" in i.op and i.op.startswith(("global_", "buffer_"))
            and not any(i.modifier(m) for m in _CACHE))
