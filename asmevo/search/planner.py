"""Which worker tries what, from which node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from asmevo.propose.proposal import Direction
from asmevo.search.attempt import Assignment
from asmevo.search.lineage import Lineage, Node
from asmevo.search.memory import Memory


class Planner(Protocol):
    """Plans one round of assignments; none means that nothing is left to try."""

    def plan(self, lineage: Lineage, memory: Memory, *, attempts: int, target: float) -> Sequence[
        Assignment
    ]: ...


@dataclass(frozen=True)
class GreedyPlanner:
    """One worker on the best node with all directions; earlier nodes when that one runs dry."""

    backtrack: bool = False

    def plan(
        self, lineage: Lineage, memory: Memory, *, attempts: int, target: float
    ) -> Sequence[Assignment]:
        for node in _by_speedup(lineage) if self.backtrack else (lineage.best,):
            open_directions = tuple(d for d in Direction if not memory.dry(node.number, d))
            if open_directions:
                return (
                    Assignment(
                        0, node, open_directions, attempts, target, memory.seen, memory.failures
                    ),
                )
        return ()


@dataclass(frozen=True)
class TeamPlanner:
    """Gives each worker another direction.

    A worker takes the best node on which its direction is not exhausted; when a direction has
    nothing left anywhere, its worker helps with another one. ``attempts_per_worker`` bounds a
    round, so that the team meets often enough to start from each other's results.
    """

    workers: int = 4
    attempts_per_worker: int = 12
    directions: Sequence[str] = tuple(d.value for d in Direction)

    def plan(
        self, lineage: Lineage, memory: Memory, *, attempts: int, target: float
    ) -> Sequence[Assignment]:
        openings = [
            (direction, node)
            for node in _by_speedup(lineage)
            for direction in (Direction(d) for d in self.directions)
            if not memory.dry(node.number, direction)
        ]
        chosen: list[tuple[Direction, Node]] = []
        for opening in openings:
            # First pass: every worker another direction.
            if len(chosen) < self.workers and opening[0] not in {d for d, _ in chosen}:
                chosen.append(opening)
        for opening in openings:
            if len(chosen) < self.workers and opening not in chosen:
                chosen.append(opening)
        share = max(1, min(self.attempts_per_worker, attempts // max(1, len(chosen))))
        return tuple(
            Assignment(
                worker, node, (direction,), share, target, memory.seen, memory.failures
            )
            for worker, (direction, node) in enumerate(chosen[: max(1, attempts)])
        )


def _by_speedup(lineage: Lineage) -> list[Node]:
    return sorted(lineage, key=lambda node: (-node.speedup, node.number))
