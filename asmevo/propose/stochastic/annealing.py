"""Simulated annealing of one trace's order against the model of one wave."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence

from asmevo.propose.scheduler.layout import Layout, Order, Scored
from asmevo.propose.stochastic.moves import MOVES, crossed


class Annealing:
    """Chains over one trace: ``proposed`` and ``accepted`` count moves by kind.

    The temperature falls from ``hot`` (a share of the cost) to nothing over a run. Moves that were
    accepted more often are tried more often, none less than one time in twenty.
    """

    def __init__(self, layout: Layout, rng: random.Random, *, hot: float = 0.02,
                 weights: Mapping[str, float] | None = None) -> None:
        self._layout = layout
        self._rng = rng
        self._hot = hot
        self._names = tuple(MOVES)
        self._weights = [(weights or {}).get(name, 1.0) for name in self._names]
        self.proposed: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()

    def run(self, start: Order, moves: int) -> Scored:
        """The best order that a chain of ``moves`` moves meets."""
        layout, rng = self._layout, self._rng
        current = best = layout.score(start)
        if len(start) < 3:
            return best
        for step in range(moves):
            name = rng.choices(self._names, self._weights)[0]
            order = MOVES[name](layout, current.order, rng)
            self.proposed[name] += 1
            if order is None or order == current.order:
                continue
            scored = layout.score(order, current.order)
            heat = self._hot * current.cost * (1 - step / moves)
            worse = scored.cost - current.cost
            if worse <= 0 or (heat > 0 and rng.random() < math.exp(-worse / heat)):
                self.accepted[name] += worse < 0
                current = scored
                if current.cost < best.cost:
                    best = current
            elif step % 200 == 199 and current.cost > best.cost * (1 + self._hot):
                current = best
        return best

    def evolve(self, parents: Sequence[Order], children: int, moves: int) -> Scored:
        """The best of short chains that start between two of several orders."""
        best = min((self._layout.score(o) for o in parents), key=lambda s: s.cost)
        for _ in range(children):
            first, second = self._rng.choice(parents), self._rng.choice(parents)
            child = self.run(crossed(self._layout, first, second, self._rng), moves)
            if child.cost < best.cost:
                best = child
        return best
