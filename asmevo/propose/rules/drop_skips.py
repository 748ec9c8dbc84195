"""Drops branches over short stretches that do nothing without lanes."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.instruction import Unit
from asmevo.isa.registers import ALL_AGPR_MASK, ALL_VGPR_MASK, EXEC_MASK
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

# Writes a lane that is off, too (CDNA3 ISA, "V_WRITELANE_B32": ignores EXEC).
_ALWAYS = ("v_writelane",)
_LANED = (Unit.VALU, Unit.TRANS, Unit.VMEM, Unit.LDS, Unit.SALU, Unit.NOP, Unit.WAIT)


class DropSkips(Rule):
    """``s_cbranch_execz`` over a few instructions costs more than they do.

    Without a lane that is on they write no vector register and access no memory; what they write of
    the scalars nobody may read behind them.
    """

    name = "drop-skips"
    direction = Direction.SIMPLIFICATION

    def __init__(self, longest: int = 16) -> None:
        self._longest = longest

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        skips = [index for index, i in enumerate(context.program.instructions)
                 if i.op == "s_cbranch_execz" and index not in context.cold
                 and self._is_short(context, index)]
        if not skips:
            return
        yield from self._dropped(context, skips)
        if len(skips) > 1:
            for index in sorted(skips, key=lambda k: (-context.weight((k,)), k)):
                yield from self._dropped(context, [index])

    def _is_short(self, context: RuleContext, index: int) -> bool:
        target = context.program.targets[index]
        if target is None or not 0 < target - index - 1 <= self._longest:
            return False
        needed = context.lanes.before[target] & ~(ALL_VGPR_MASK | ALL_AGPR_MASK)
        for k in range(index + 1, target):
            i = context.program.instructions[k]
            if (i.unit not in _LANED or k in context.labelled or k in context.fences
                    or i.op.startswith(_ALWAYS) or i.writes & (EXEC_MASK | needed)):
                return False
        return True

    def _dropped(self, context: RuleContext, skips: list[int]) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        rewrite.delete(skips)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            yield self.proposal(
                preview, f"{len(skips)} branch(es) over a few instructions that do nothing when no"
                " lane is on")
