"""Issues loads earlier, with the address arithmetic that they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from asmevo.isa.instruction import Unit
from asmevo.propose.dependence import Dependences
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

_LOADS = (Unit.VMEM, Unit.FLAT, Unit.SMEM, Unit.LDS)


class HoistLoads(Rule):
    """Independent work stands in front of a load, so issuing the load first hides its latency.

    Within one block a load moves up together with whatever it depends on. Waits it crosses are
    placed anew, since the counters now count it among the earlier operations. Loads cross stores
    only in proposals whose assumption says that the two do not overlap.
    """

    name = "hoist-loads"
    direction = Direction.LATENCY_HIDING

    def __init__(self, distances: tuple[int, ...] = (16, 48), individual: int = 64) -> None:
        self._distances = tuple(distances)
        self._individual = individual

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        blocks = [
            block for block in context.cfg.blocks
            if any(_is_load(context, i) for i in range(block.start, block.end))
        ]
        for guess in (True, False):
            orders = [self._first(context, b.start, b.end, guess) for b in blocks]
            yield from self._reordered(context, orders, guess, "all loads as early as possible")
        for block in sorted(
                blocks, key=lambda b: -context.weight(range(b.start, b.end))):
            for guess in (True, False):
                order = self._first(context, block.start, block.end, guess)
                yield from self._reordered(
                    context, [order], guess,
                    f"the loads of instructions {block.start} to {block.end} first")
        loads = sorted(
            (i for b in blocks for i in range(b.start, b.end) if _is_load(context, i)),
            key=lambda i: (-context.weight((i,)), i))
        for load in loads[:self._individual]:
            yield from self._single(context, load)

    def _single(self, context: RuleContext, load: int) -> Iterator[Proposal]:
        block = context.cfg.blocks[context.cfg.block_of[load]]
        for guess in (False, True):
            graph = Dependences(context, block.start, block.end, assume_disjoint=guess)
            for distance in (*self._distances, load - block.start):
                begin = max(block.start, load - distance)
                needed = {i for i in graph.slice(load) if i >= begin}
                early = [*sorted(needed), load]
                rest = [i for i in range(begin, load) if i not in needed]
                order = [*range(block.start, begin), *early, *rest,
                         *range(load + 1, block.end)]
                yield from self._reordered(
                    context, [order], guess,
                    f"'{context.lines[load]}' up to {distance} instructions earlier")

    def _first(self, context: RuleContext, start: int, stop: int, guess: bool) -> list[int]:
        """The block with each load, and what it needs, in front of everything else."""
        graph = Dependences(context, start, stop, assume_disjoint=guess)
        order: dict[int, None] = {}
        for index in range(start, stop):
            if _is_load(context, index):
                for needed in sorted(graph.slice(index)):
                    order.setdefault(needed)
                order.setdefault(index)
        for index in range(start, stop):
            order.setdefault(index)
        return list(order)

    def _reordered(
        self, context: RuleContext, orders: Iterable[list[int]], guess: bool,
        what: str,
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        instructions = context.program.instructions
        for order in orders:
            if order == sorted(order):
                continue
            # Waits and nops belong to places, not to instructions: where instructions move, both
            # are put anew below.
            moved = [i for i, now in zip(sorted(order), order, strict=True) if i != now]
            placed = {
                i for i in order
                if moved[0] <= i <= moved[-1] and i not in context.guards
                and (instructions[i].wait is not None or instructions[i].op == "s_nop")
            }
            rewrite.delete(placed)
            rewrite.permute((i for i in order if i not in placed), context.lines)
        if not rewrite:
            return
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if not is_clean(context, preview):
            return
        yield self.proposal(
            preview, f"{what}: the work they now precede hides their latency",
            "accesses to different buffers do not overlap" if guess else "")


def _is_load(context: RuleContext, index: int) -> bool:
    i = context.program.instructions[index]
    return i.is_load and i.unit in _LOADS and index not in context.fences
