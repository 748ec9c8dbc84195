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
    steps, before = layout.steps, layout.constraints.before
    items = layout.original
    kept = set(items)
    preds = {k: before[k] & kept for k in items}
    after: dict[int, list[int]] = {k: [] for k in items}
    for k in items:
        for p in preds[k]:
            after[p].append(k)
    turns = {k: max(len(steps[k]), 1) for k in items}
    distance, heights = _distances(layout, after, heuristic.far)
    height = dict(heights)
    if heuristic.noise:
        noise = random.Random(seed)  # noqa: S311 - reproducible, not secret
        for k in items:
            height[k] *= 1 + heuristic.noise * (noise.random() - 0.5)
    ready_at = dict.fromkeys(items, 0)
    waiting = {k: len(preds[k]) for k in items}
    ready = [k for k in items if not waiting[k]]
    memory = {k for k in items if any(s.vm for s in steps[k])}
    matrix = {k for k in items if any(s.matrix for s in steps[k])}
    rank_of = {k: n for n, k in enumerate(items)} if heuristic.anchored else {}
    anchors = {k for k in rank_of
               if any(s.vm or s.lds or s.scalar or s.barrier for s in steps[k])}
    order: list[int] = []
    time = memory_free = matrix_free = 0
    while ready:
        chosen = -1
        best_rank = (1 << 60, 0.0, 0)
        now = len(order)
        for k in ready:
            if k in anchors:
                # At its place, or as soon after as it can be; before only if nothing else is left.
                place = rank_of[k] - now
                rank = (-1, float(k), k) if place <= 0 else (1 << 20, float(k), k)
                if rank < best_rank:
                    chosen, best_rank = k, rank
                continue
            start = ready_at[k]
            if k in memory and memory_free > start:
                start = memory_free
            elif k in matrix and matrix_free > start:
                start = matrix_free
            rank = (max(start - time, 0), float(k) if heuristic.source else -height[k], k)
            if rank < best_rank:
                chosen, best_rank = k, rank
        ready.remove(chosen)
        order.append(chosen)
        time += best_rank[0] if 0 < best_rank[0] < 1 << 20 else 0
        if chosen in memory:
            memory_free = time + heuristic.memory
        if chosen in matrix:
            busy = sum(s.matrix for s in steps[chosen]) // TURN
            matrix_free = time + max(busy, heuristic.matrix)
        for s in after[chosen]:
            ready_at[s] = max(ready_at[s], time + distance[chosen, s])
            waiting[s] -= 1
            if not waiting[s]:
                ready.append(s)
        time += turns[chosen]
    return tuple(order)


_Distances = tuple[dict[tuple[int, int], int], dict[int, float]]
_known: WeakKeyDictionary[Layout, dict[float, _Distances]] = WeakKeyDictionary()


def _distances(layout: Layout, after: dict[int, list[int]], far: float) -> _Distances:
    """Turns between items and those that depend on them, and from items to the trace's end."""
    known = _known.setdefault(layout, {})
    if far not in known:
        steps = layout.steps
        distance: dict[tuple[int, int], int] = {}
        height: dict[int, float] = {}
        reads = {k: _reads(steps[k]) for k in layout.original}
        for k in reversed(layout.original):
            best = 0.0
            for s in after[k]:
                d = distance[k, s] = _distance(steps[k], reads[s], far)
                best = max(best, height[s] + d)
            height[k] = best + max(len(steps[k]), 1)
        known[far] = distance, height
    return known[far]


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
