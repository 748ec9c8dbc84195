"""A trace in all the orders that it may have: what each costs, and the edits that make it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from asmevo.isa.instruction import Unit
from asmevo.isa.waits import Outstanding
from asmevo.propose.rewrite import Rewrite, longest_increasing
from asmevo.propose.rule import RuleContext
from asmevo.propose.scheduler.order_constraints import OrderConstraints
from asmevo.propose.scheduler.step import Step, Steps
from asmevo.propose.scheduler.trace import Item, Trace
from asmevo.propose.scheduler.walk import Flight, Placed, Trail, Walker

Order = tuple[int, ...]
_Trails = tuple[Trail | None, Trail | None] | tuple[()]
_MOST_TRAILS = 3


@dataclass(frozen=True)
class Scored:
    """An order and its cost in clk by the model of one wave."""

    order: Order
    cost: int
    placed: tuple[Placed, ...]


class Layout:
    """One trace; ``weight`` is how often it is executed, ``cold`` code is fetched for it."""

    def __init__(self, context: RuleContext, trace: Trace, steps: Steps, walker: Walker,
                 entry: Sequence[Outstanding], weight: int, *, exposed: frozenset[int],
                 assume_disjoint: bool, cold: bool = False, seen: frozenset[int] | None = None,
                 constraints: OrderConstraints | None = None) -> None:
        self._context = context
        self.trace = trace
        self.weight = weight
        self._steps, self._walker = steps, walker
        program = context.program
        instructions = program.instructions
        self.placed = frozenset(
            i for item in trace.items if not item.pinned and len(item.indices) == 1
            for i in item.indices
            if (instructions[i].wait is not None or instructions[i].unit is Unit.NOP)
            and i not in context.guards)
        self.constraints = constraints or OrderConstraints(
            program, trace, fences=context.fences, guards=context.guards, exposed=exposed,
            placed=self.placed, assume_disjoint=assume_disjoint, seen=seen)
        own = set(trace.indices())
        self._entry = Flight.of(
            [o for o in entry if not trace.loops or o.index not in own],
            {o.index: steps[o.index].latency // 2 for o in entry if steps[o.index].load})
        self._as_is: Scored | None = None
        self._trails: OrderedDict[Order, _Trails] = OrderedDict()
        self._address = program.offsets[trace.start]
        self._cold = cold and not trace.loops

    @cached_property
    def original(self) -> Order:
        """The order as it is, without waits and wait states, which are put anew in any order."""
        return tuple(k for k, item in enumerate(self.trace.items)
                     if item.kept and (item.pinned or item.kept[0] not in self.placed))

    @cached_property
    def steps(self) -> dict[int, tuple[Step, ...]]:
        """What each item executes."""
        return {k: self._of(self.trace.items[k]) for k in self.original}

    def _of(self, item: Item) -> tuple[Step, ...]:
        kept = item.kept
        if not kept:
            return ()
        if item.pinned and len(kept) > 1:
            return (self._steps.region(kept),)
        return tuple(self._steps[i] for i in kept)

    @property
    def time(self) -> int:
        """Clk of all executions as it is."""
        return self.score(self.original).cost * self.weight

    def score(self, order: Order, near: Order | None = None) -> Scored:
        """The cost of an order and the waits that it needs.

        ``near`` is an order that is mostly the same, and will be compared with others: those are
        walked from where they differ.
        """
        if order != self.original:
            return self._score(order, near)
        if self._as_is is None:
            self._as_is = self._score(order)
        return self._as_is

    def _score(self, order: Order, near: Order | None = None) -> Scored:
        """The cost of an order; of a loop's in its second round and all that follow."""
        trails = self._trails
        if near is None:
            return self._walked(order, (), keep=False)[0]
        if near not in trails:
            trails[near] = self._walked(near, (), keep=True)[1]
        trails.move_to_end(near)
        scored, trails[order] = self._walked(order, trails[near], keep=True)
        while len(trails) > _MOST_TRAILS:
            trails.popitem(last=False)
        return scored

    def _walked(self, order: Order, like: _Trails, *, keep: bool) -> tuple[Scored, _Trails]:
        steps = [step for k in order for step in self.steps[k]]
        first, second = like or (None, None)
        walked = self._walker.walk(
            steps, self._entry, self._address, cold=self._cold, mark=keep, like=first)
        kept = walked.trail
        if not self.trace.loops:
            return Scored(order, walked.clk + walked.left, walked.placed), (kept, None)
        again = walked.flight.later(walked.clk, self._entry)
        walked = self._walker.walk(
            steps, again, self._address, cold=False, mark=keep, like=second)
        return Scored(order, walked.clk, walked.placed), (kept, walked.trail)

    def rewrite(self, rewrite: Rewrite, scored: Scored) -> None:
        """Add the changes that make the trace's text this order."""
        lines, items = self._context.lines, self.trace.items
        pins = [k for k, item in enumerate(items) if item.pinned]
        gap_of = self.trace.gaps
        rewrite.delete(self.placed)
        rewrite.delete(i for item in items for i in item.dropped)
        waits: dict[int, list[str]] = {}
        for p in scored.placed:
            waits.setdefault(p.position, []).append(p.text)
        tokens: list[list[int | str]] = [[] for _ in range(len(pins) + 1)]
        place = at = 0
        for k in scored.order:
            if not items[k].pinned:
                for step in self.steps[k]:
                    tokens[at] += waits.get(place, ())
                    tokens[at].append(step.index)
                    place += 1
            else:
                for _ in self.steps[k]:
                    tokens[at] += waits.get(place, ())
                    place += 1
                at += 1
        own: list[list[int]] = [[] for _ in range(len(pins) + 1)]
        for index, g in gap_of.items():
            own[g].append(index)
        for g, sequence in enumerate(tokens):
            stay = longest_increasing(tuple(
                t for t in sequence if isinstance(t, int) and gap_of[t] == g))
            pending: list[str] = []
            for token in sequence:
                if isinstance(token, str):
                    pending.append(token)
                elif token in stay:
                    if pending:
                        rewrite.insert(token, *pending)
                        pending = []
                else:
                    rewrite.delete((token,))
                    pending.append(lines[token])
            if not pending:
                continue
            if g < len(pins):
                rewrite.insert(items[pins[g]].indices[0], *pending)
            else:
                # In front of a label that may follow.
                last = own[g][-1]
                rewrite.replace(last, *((lines[last],) if last in stay else ()), *pending)
