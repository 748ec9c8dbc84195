"""Reorders whole blocks so that results have time to arrive before they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from asmevo.isa.dependence import Dependences
from asmevo.isa.instruction import Unit
from asmevo.propose.issue_slots import slots_between
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.reordering import reordered
from asmevo.propose.rule import Rule, RuleContext

# Issue slots of a store's pipe, as in `asmevo.propose.issue_slots`.
_STORE = 72


class ScheduleBlocks(Rule):
    """Independent instructions can fill the slots in which the block would wait for a result.

    List scheduling: of the instructions whose operands are ready, issue the one with the longest
    chain of latencies behind it. Waits and ``s_nop`` are placed anew for the new order.
    ``intervals`` are the issue slots a vector memory access is taken to occupy its pipe: 0 issues
    loads as soon as possible, a wide interval spreads them among other work, as suits a compute
    unit whose waves share the pipe.
    """

    name = "schedule-blocks"
    direction = Direction.DEPENDENCY_CHAINS

    def __init__(
        self, smallest: int = 4, span: int = 4, intervals: Sequence[int] = (8, 16, 0),
    ) -> None:
        self._smallest = smallest
        self._span = span
        self._intervals = tuple(intervals)

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        blocks = [
            (b.start, b.end) for b in context.cfg.blocks
            if b.end - b.start >= self._smallest and b.start not in context.cold]
        variants = [(i, assume) for i in self._intervals for assume in (False, True)]
        for interval, assume in variants:
            yield from self._scheduled(context, blocks, interval, assume)
        if len(blocks) > 1:
            hottest = sorted(blocks, key=lambda b: -context.weight(range(*b)))
            for block in hottest:
                for interval, assume in variants:
                    yield from self._scheduled(context, [block], interval, assume)

    def _scheduled(
        self, context: RuleContext, blocks: list[tuple[int, int]], interval: int, assume: bool,
    ) -> Iterator[Proposal]:
        preview = reordered(context, self.name, self._span, [
            (range(start, end), _order(
                context, context.dependences(start, end, assume_disjoint=assume), interval))
            for start, end in blocks])
        if preview is not None:
            where = (f"instructions {blocks[0][0]} to {blocks[0][1]}" if len(blocks) == 1
                     else f"{len(blocks)} blocks")
            yield self.proposal(
                preview,
                f"{where} in the order in which results become ready, memory accesses"
                f" {interval} slots apart",
                "accesses to different buffers do not overlap" if assume else "")


def _order(context: RuleContext, graph: Dependences, interval: int) -> list[int]:
    """A greedy order of a block, without its waits and nops."""
    instructions = context.program.instructions
    indices = [
        i for i in range(graph.start, graph.stop)
        if i in context.kept_waits or not (
            instructions[i].wait is not None or instructions[i].op == "s_nop")
    ]
    kept = set(indices)
    before = {i: graph.predecessors[i] & kept for i in indices}
    after: dict[int, list[int]] = {i: [] for i in indices}
    for i in indices:
        for p in before[i]:
            after[p].append(i)
    height: dict[int, int] = {}
    for i in reversed(indices):
        # Nothing in the block waits for a store, but stores behind one another share one pipe: work
        # that several of them depend on comes first.
        own = _STORE if instructions[i].is_store else 0
        height[i] = max(
            (height[s] + slots_between(instructions[i], instructions[s]) for s in after[i]),
            default=0) + own
    ready_at = dict.fromkeys(indices, 0)
    waiting = {i: len(before[i]) for i in indices}
    ready = {i for i in indices if not waiting[i]}
    memory = {i for i in indices if instructions[i].unit in (Unit.VMEM, Unit.FLAT)}
    order: list[int] = []
    time = pipe_free = 0
    while ready:
        def rank(i: int, time: int = time, pipe_free: int = pipe_free) -> tuple[int, int, int]:
            start = max(ready_at[i], pipe_free) if i in memory else ready_at[i]
            return max(start - time, 0), -height[i], i

        chosen = min(ready, key=rank)
        ready.remove(chosen)
        order.append(chosen)
        time += rank(chosen)[0]
        if chosen in memory:
            pipe_free = time + interval
        for s in after[chosen]:
            ready_at[s] = max(
                ready_at[s], time + slots_between(instructions[chosen], instructions[s]))
            waiting[s] -= 1
            if not waiting[s]:
                ready.add(s)
        time += 1
    return order
