"""From which verified node to branch: each policy puts the nodes into an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from asmevo.search.lineage import Lineage, Node


class Policy(Protocol):
    """An order of the nodes, the most wanted first; every node is in it once."""

    @property
    def name(self) -> str: ...

    def order(self, lineage: Lineage) -> Sequence[Node]: ...


@dataclass(frozen=True)
class Best:
    """The fastest first, the earliest of equals."""

    name: str = "best"

    def order(self, lineage: Lineage) -> Sequence[Node]:
        return sorted(lineage, key=lambda node: (-node.speedup, node.number))


@dataclass(frozen=True)
class Recent:
    """The newest first: where something was found, there may be more."""

    name: str = "recent"

    def order(self, lineage: Lineage) -> Sequence[Node]:
        return sorted(lineage, key=lambda node: -node.number)


@dataclass(frozen=True)
class Backtrack:
    """Back from the best towards the original, then its branches, and the best itself last."""

    name: str = "backtrack"

    def order(self, lineage: Lineage) -> Sequence[Node]:
        best = lineage.best
        back = list(reversed(lineage.path(best)[:-1]))
        known = {node.number for node in back} | {best.number}
        return [*back, *(n for n in reversed(list(lineage)) if n.number not in known), best]


@dataclass(frozen=True)
class Diverse:
    """The best first, then always the node that is least like those before it.

    Nodes are alike as far as the same edits lead to them from the root (Jaccard similarity). Of
    equally different ones the fastest comes first.
    """

    name: str = "diverse"

    def order(self, lineage: Lineage) -> Sequence[Node]:
        marks = {node.number: _marks(lineage, node) for node in lineage}
        left = list(Best().order(lineage))
        chosen = [left.pop(0)]
        distance = {n.number: _distance(marks[n.number], marks[chosen[0].number]) for n in left}
        while left:
            following = max(left, key=lambda n: (distance[n.number], n.speedup, -n.number))
            left.remove(following)
            chosen.append(following)
            for node in left:
                apart = _distance(marks[node.number], marks[following.number])
                distance[node.number] = min(distance[node.number], apart)
        return chosen


def _marks(lineage: Lineage, node: Node) -> frozenset[tuple[int, int, tuple[str, ...]]]:
    return frozenset(
        (edit.start, edit.stop, edit.lines) for step in lineage.path(node) for edit in step.edits)


def _distance(first: frozenset[object], second: frozenset[object]) -> float:
    union = len(first | second)
    return 0.0 if not union else 1.0 - len(first & second) / union


POLICIES = {policy.name: policy for policy in (Best(), Recent(), Diverse(), Backtrack())}
