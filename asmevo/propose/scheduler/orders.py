"""List scheduling: orders of a trace that put work where it would otherwise wait."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from asmevo.propose.scheduler.layout import Layout, Order
from asmevo.propose.scheduler.machine import TURN
from asmevo.propose.scheduler.step import Step


@dataclass(frozen=True, slots=True)
class Heuristic:
    """How to choose among what is ready.

    ``far`` scales the latency that a load is taken to have, that from LDS as well if it is 0.
    ``memory`` are turns between two vector memory accesses, ``matrix`` between two matrix
    operations, as long as there is other work. ``anchored`` accesses, and barriers, stay at their
    place among the others, so that only arithmetic moves. ``source`` prefers the original order to
    the longest chain, ``noise`` is the part of the priority that is random.
    """

    name: str
    far: float = 1.0
    memory: int = 0
    matrix: int = 0
    source: bool = False
    noise: float = 0.0
    anchored: bool = False


HEURISTICS = (
    Heuristic("critical path"),
    Heuristic("original order unless it waits", source=True),
    Heuristic("original order unless an operation waits for a result", far=0.0, source=True),
    Heuristic("memory as it is, arithmetic in the order of its results", far=0.0, source=True,
              anchored=True),
    Heuristic("memory as it is, arithmetic by its critical path", far=0.0, anchored=True),
    Heuristic("critical path, memory 8 turns apart", memory=8),
    Heuristic("critical path, loads twice as far", far=2.0),
    Heuristic("critical path, loads half as far", far=0.5),
    Heuristic("original order, loads twice as far", far=2.0, source=True),
    Heuristic("critical path, memory 16 turns apart", memory=16),
    Heuristic("critical path, matrix operations between others", matrix=4, memory=4),
    Heuristic("original order, memory 4 turns apart", memory=4, source=True),
)


def listed(layout: Layout, heuristic: Heuristic, seed: int = 0) -> Order:
    """A greedy order of a trace."""
    graph = _graph(layout)
    items, after = graph.items, graph.after
    distance, heights = graph.distances(layout, heuristic.far)
    height = heights
    if heuristic.noise:
        noise = random.Random(seed)  # noqa: S311 - reproducible, not secret
        height = {k: height[k] * (1 + heuristic.noise * (noise.random() - 0.5)) for k in items}
    key = {k: float(k) for k in items} if heuristic.source else {k: -height[k] for k in items}
    ready_at = dict.fromkeys(items, 0)
    waiting = dict(graph.waiting)
    ready = [k for k in items if not waiting[k]]
    memory, matrix = graph.memory, graph.matrix
    anchors = graph.anchors if heuristic.anchored else {}
    order: list[int] = []
    time = memory_free = matrix_free = 0
    while ready:
        chosen = -1
        best_late, best_key = 1 << 60, 0.0
        now = len(order)
        for k in ready:
            if k in anchors:
                # At its place, or as soon after as it can be; before only if nothing else is left.
                late, preferred = (-1 if anchors[k] <= now else 1 << 20), float(k)
            else:
                late = ready_at[k] - time
                if k in memory:
                    if memory_free - time > late:
                        late = memory_free - time
                elif k in matrix and matrix_free - time > late:
                    late = matrix_free - time
                if late < 0:
                    late = 0
                if late > best_late:
                    continue
                preferred = key[k]
            if late < best_late or (late == best_late and (
                    preferred < best_key or (preferred == best_key and k < chosen))):
                chosen, best_late, best_key = k, late, preferred
        ready.remove(chosen)
        order.append(chosen)
        time += best_late if 0 < best_late < 1 << 20 else 0
        if chosen in memory:
            memory_free = time + heuristic.memory
        if chosen in matrix:
            matrix_free = time + max(matrix[chosen], heuristic.matrix)
        for s in after[chosen]:
            then = time + distance[chosen, s]
            if then > ready_at[s]:
                ready_at[s] = then
            waiting[s] -= 1
            if not waiting[s]:
                ready.append(s)
        time += graph.turns[chosen]
    return tuple(order)


_Distances = tuple[dict[tuple[int, int], int], dict[int, float]]


class _Graph:
    """What all greedy orders of a trace begin with: what waits for what, and for how long.

    ``matrix`` are turns that items keep the matrix pipe busy, ``anchors`` the places of memory
    accesses and barriers.
    """

    def __init__(self, layout: Layout) -> None:
        steps, before = layout.steps, layout.constraints.before
        self.items = items = layout.original
        kept = set(items)
        self.after: dict[int, list[int]] = {k: [] for k in items}
        self.waiting: dict[int, int] = {}
        for k in items:
            preds = before[k] & kept
            self.waiting[k] = len(preds)
            for p in preds:
                self.after[p].append(k)
        self.turns = {k: max(len(steps[k]), 1) for k in items}
        self.memory = {k for k in items if any(s.vm for s in steps[k])}
        self.matrix = {k: sum(s.matrix for s in steps[k]) // TURN for k in items
                       if any(s.matrix for s in steps[k])}
        self.anchors = {k: n for n, k in enumerate(items)
                        if any(s.vm or s.lds or s.scalar or s.barrier for s in steps[k])}
        self._distances: dict[float, _Distances] = {}

    def distances(self, layout: Layout, far: float) -> _Distances:
        """Turns between items and those that depend on them, and from items to the trace's end."""
        if far not in self._distances:
            steps = layout.steps
            distance: dict[tuple[int, int], int] = {}
            height: dict[int, float] = {}
            reads = {k: _reads(steps[k]) for k in self.items}
            for k in reversed(self.items):
                best = 0.0
                for s in self.after[k]:
                    d = distance[k, s] = _distance(steps[k], reads[s], far)
                    best = max(best, height[s] + d)
                height[k] = best + self.turns[k]
            self._distances[far] = distance, height
        return self._distances[far]


_graphs: WeakKeyDictionary[Layout, _Graph] = WeakKeyDictionary()


def _graph(layout: Layout) -> _Graph:
    if layout not in _graphs:
        _graphs[layout] = _Graph(layout)
    return _graphs[layout]


def _reads(steps: Sequence[Step]) -> int:
    reads = 0
    for step in steps:
        reads |= step.reads
    return reads


def _distance(first: Sequence[Step], reads: int, far: float) -> int:
    """Turns from issuing one item to issuing another that depends on it."""
    distance = len(first)
    for position, step in enumerate(first):
        for op in (step, *step.inner):
            if not op.writes & reads:
                continue
            clk = op.latency + op.pipe if op.load else op.matrix or op.alu
            if op.load and (op.vm or not far):
                clk = int(clk * far)
            if op.matrix:
                clk += 5 * TURN
            distance = max(distance, position + max(clk // TURN, 1))
    return distance
