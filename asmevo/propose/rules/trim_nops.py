"""Shortens ``s_nop`` to what the hazard table asks for."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.hazards import smallest_nop
from asmevo.isa.instruction import Unit
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import separate
from asmevo.propose.rule import Rule, RuleContext


class TrimNops(Rule):
    """No producer and consumer around the ``s_nop`` need that many wait states between them."""

    name = "trim-nops"
    direction = Direction.SIMPLIFICATION

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        found: list[tuple[int, int | None]] = []
        for index, i in enumerate(context.program.instructions):
            if i.unit is Unit.NOP and i.op == "s_nop" and index not in context.cold:
                smallest = smallest_nop(context.program, index)
                if smallest is None or smallest < i.operands[0].value:
                    found.append((index, smallest))
        if not found:
            return
        yield self._trimmed(context, found)
        if len(found) > 1:
            yield from context.by_weight(((n[0],), self._trimmed(context, [n])) for n in found)

    def _trimmed(self, context: RuleContext, nops: list[tuple[int, int | None]]) -> Proposal:
        rewrite = context.rewrite()
        parts = []
        for index, smallest in nops:
            if smallest is None:
                rewrite.delete((index,))
            else:
                rewrite.replace(index, f"s_nop {smallest}")
            parts.append(f"'{context.lines[index]}' at {index} -> "
                         f"{'nothing' if smallest is None else f's_nop {smallest}'}")
        # Two neighbouring nops may each be superfluous, but not both.
        preview = separate(context, context.preview.apply(rewrite.edits(self.name)))
        return self.proposal(
            preview,
            "no hazard around them needs as many wait states: " + "; ".join(parts))
