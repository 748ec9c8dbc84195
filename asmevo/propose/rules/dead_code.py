"""Removes computations whose results nothing uses, and the LDS traffic that only they need."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.instruction import OperandKind, Unit
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import repair
from asmevo.propose.rule import Rule, RuleContext
from asmevo.propose.usefulness import chains, useless


class DeadCode(Rule):
    """Every register the instructions write is overwritten or never read by anything that matters.

    Loads count as removable; waits whose count included a removed operation are lowered. An LDS
    store goes too when the remaining LDS reads seem to lie outside its part of the LDS: read and
    write addresses are compared by their constant offsets only, so that is an assumption.
    """

    name = "dead-code"
    direction = Direction.SIMPLIFICATION

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        certain = useless(context)
        stores = _unread_stores(context, certain)
        wide = useless(context, stores) if stores else certain
        while more := _unread_stores(context, wide) - stores:
            stores |= more
            wide = useless(context, stores)
        if wide != certain:
            yield self._removal(context, tuple(sorted(wide)), stores)
        if not certain:
            return
        groups = chains(context, certain)
        yield self._removal(context, tuple(sorted(certain)), frozenset())
        if len(groups) > 1:
            yield from context.by_weight(
                (group, self._removal(context, group, frozenset())) for group in groups)

    def _removal(
        self, context: RuleContext, indices: tuple[int, ...], stores: frozenset[int],
    ) -> Proposal:
        rewrite = context.rewrite()
        rewrite.delete(indices)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        loads = sum(context.program.instructions[i].is_load for i in indices)
        rationale = f"nothing uses the results of {len(indices)} instruction(s)"
        if loads:
            rationale += f", {loads} of them loads"
        assumption = ""
        if stores:
            rationale += f", {len(stores)} of them LDS stores"
            assumption = (
                f"no remaining LDS read reaches what {len(stores)} LDS store(s) write, judging by"
                " constant offsets alone")
        return self.proposal(preview, rationale, assumption)


def _unread_stores(context: RuleContext, removed: frozenset[int]) -> frozenset[int]:
    """LDS stores whose offsets no remaining LDS read falls into.

    The offsets of the stores through one address register cut the LDS into parts, each owned by the
    store that begins there.
    """
    instructions = context.program.instructions
    stores: dict[int, list[tuple[int, int]]] = {}
    reads: list[int] = []
    for index, i in enumerate(instructions):
        if index in removed or index in context.indexed:
            continue
        if i.unit is Unit.FLAT or i.modifier("lds") or (i.unit is Unit.LDS and i.is_atomic):
            return frozenset()
        if i.unit is not Unit.LDS or not i.accesses_memory:
            continue
        offset = i.modifier("offset") or 0
        address = i.operands[1 if i.is_load else 0]
        if (not isinstance(offset, int) or address.kind is not OperandKind.REGISTER
                or i.op.startswith(("ds_read2", "ds_write2")) or "addtid" in i.op):
            return frozenset()
        if i.is_load:
            reads.append(offset)
        else:
            stores.setdefault(address.first, []).append((offset, index))
    unread: set[int] = set()
    for parts in stores.values():
        starts = sorted({offset for offset, _ in parts})
        for offset, index in parts:
            following = [s for s in starts if s > offset]
            end = following[0] if following else None
            if not any(offset <= r and (end is None or r < end) for r in reads):
                unread.add(index)
    return frozenset(unread)
