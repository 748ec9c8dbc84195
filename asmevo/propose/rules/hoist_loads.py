"""Issues loads earlier, with the address arithmetic that they need."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from asmevo.isa.cfg import Block
from asmevo.isa.dependence import Dependences
from asmevo.isa.instruction import Unit
from asmevo.propose.barrier_waits import guard_barriers
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

_LOADS = (Unit.VMEM, Unit.FLAT, Unit.SMEM, Unit.LDS)
# Farther than any block is long.
_FRONT = 1 << 20


class HoistLoads(Rule):
    """Independent work stands in front of a load, so issuing the load first hides its latency.

    Within one block a load moves up together with whatever it depends on: by a number of
    instructions, or to the front, in the order in which results are used. Waits it crosses are
    placed anew, since the counters now count it among the earlier operations. Loads cross stores
    only in proposals whose assumption says that the two do not overlap.
    """

    name = "hoist-loads"
    direction = Direction.LATENCY_HIDING

    def __init__(self, distances: Sequence[int] = (48, 16, 128), individual: int = 64) -> None:
        self._distances = tuple(distances)
        self._individual = individual

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        blocks = [
            block for block in context.cfg.blocks
            if block.start not in context.cold
            and any(_is_load(context, i) for i in range(block.start, block.end))
        ]
        if not blocks:
            return
        yield from self._together(context, blocks, "all loads")
        if len(blocks) > 1:
            hottest = sorted(blocks, key=lambda b: -context.weight(range(b.start, b.end)))
            for block in hottest:
                yield from self._together(
                    context, [block], f"the loads of instructions {block.start} to {block.end}")
        loads = sorted(
            (i for b in blocks for i in range(b.start, b.end) if _is_load(context, i)),
            key=lambda i: (-context.weight((i,)), i))
        for load in loads[:self._individual]:
            yield from self._single(context, load)

    def _together(
        self, context: RuleContext, blocks: list[Block], what: str,
    ) -> Iterator[Proposal]:
        users = _first_users(context, blocks)
        wishes = {"first, in the order of their use": {i: u - _FRONT for i, u in users.items()}}
        for distance in self._distances:
            wishes[f"{distance} instructions earlier"] = {i: i - distance for i in users}
        wishes["first"] = {i: i - _FRONT for i in users}
        graphs = {
            assume: [
                context.dependences(b.start, b.end, assume_disjoint=assume) for b in blocks]
            for assume in (False, True)
        }
        for description, wish in wishes.items():
            for assume in (False, True):
                orders = [_order(graph, wish) for graph in graphs[assume]]
                yield from self._reordered(context, orders, assume, f"{what} {description}")

    def _single(self, context: RuleContext, load: int) -> Iterator[Proposal]:
        block = context.cfg.blocks[context.cfg.block_of[load]]
        tried: set[tuple[int, ...]] = set()
        for assume in (False, True):
            graph = context.dependences(block.start, block.end, assume_disjoint=assume)
            for distance in (*self._distances, _FRONT):
                order = _order(graph, {load: load - distance})
                if tuple(order) not in tried:
                    tried.add(tuple(order))
                    yield from self._reordered(
                        context, [order], assume,
                        f"'{context.lines[load]}' " + (
                            "first" if distance == _FRONT else f"{distance} instructions earlier"))

    def _reordered(
        self, context: RuleContext, orders: list[list[int]], assume: bool, what: str,
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        instructions = context.program.instructions
        for order in orders:
            moved = [i for i, now in zip(sorted(order), order, strict=True) if i != now]
            if not moved:
                continue
            # Waits and nops belong to places, not to instructions: where instructions move, both
            # are put anew below.
            placed = {
                i for i in order
                if moved[0] <= i <= moved[-1] and i not in context.kept_waits
                and (instructions[i].wait is not None or instructions[i].op == "s_nop")
            }
            rewrite.delete(placed)
            rewrite.permute((i for i in order if i not in placed), context.lines)
        if not rewrite:
            return
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        preview = guard_barriers(context.preview, preview)
        if is_clean(context, preview):
            yield self.proposal(
                preview, f"{what}: the work they now precede hides their latency",
                "accesses to different buffers do not overlap" if assume else "")


def _is_load(context: RuleContext, index: int) -> bool:
    i = context.program.instructions[index]
    return i.is_load and i.unit in _LOADS and index not in context.fences


def _first_users(context: RuleContext, blocks: list[Block]) -> dict[int, int]:
    """Per load, the next instruction of the kernel's text that reads what it loads."""
    instructions = context.program.instructions
    out: dict[int, int] = {}
    for block in blocks:
        for load in range(block.start, block.end):
            if _is_load(context, load):
                written = instructions[load].writes
                out[load] = next(
                    (i for i in range(load + 1, len(instructions))
                     if instructions[i].reads & written),
                    len(instructions))
    return out


def _order(graph: Dependences, wishes: dict[int, int]) -> list[int]:
    """The block with instructions where they wish to be, as far as dependences allow.

    What a moved instruction depends on moves with it; everything else keeps its order.
    """
    indices = range(graph.start, graph.stop)
    key = {i: wishes.get(i, i) for i in indices}
    after: dict[int, list[int]] = {i: [] for i in indices}
    for i in reversed(indices):
        for p in graph.predecessors[i]:
            key[p] = min(key[p], key[i])
            after[p].append(i)
    waiting = {i: len(graph.predecessors[i]) for i in indices}
    ready = [(key[i], i) for i in indices if not waiting[i]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, chosen = heapq.heappop(ready)
        order.append(chosen)
        for s in after[chosen]:
            waiting[s] -= 1
            if not waiting[s]:
                heapq.heappush(ready, (key[s], s))
    return order
