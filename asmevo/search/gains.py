"""Verified candidates that are worth composing: a little faster than their base, committed or not.

Most of what passes every gate gains less than the noise margin of G4 alone. Together such
candidates often reach it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from asmevo.codeobject.assembly import Edit
from asmevo.search.composition import Part, joined, rebased
from asmevo.search.lineage import Lineage, Node

_LEAST = 1e-6  # the rounding of a median is no gain


@dataclass
class Gains:
    """Parts by candidate, at most ``limit``: those of the largest gain stay."""

    limit: int = 128
    _parts: dict[str, Part] = field(default_factory=dict)
    _moved: dict[tuple[str, int], tuple[Edit, ...] | None] = field(default_factory=dict)
    _tried: dict[int, set[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: Part) -> None:
        """Keep a verified candidate if it is faster than its base."""
        if part.ratio <= 1.0 + _LEAST:
            return
        self._parts[part.candidate] = part
        if len(self._parts) > self.limit:
            loose = [p for p in self._parts.values() if p.node is None]
            if loose:
                worst = min(loose, key=lambda p: (p.ratio, p.candidate))
                del self._parts[worst.candidate]

    def part(self, candidate: str) -> Part | None:
        return self._parts.get(candidate)

    def mark_tried(self, base: int, candidates: Collection[str]) -> None:
        """These need not be composed on ``base`` again until there is another one."""
        self._tried.setdefault(base, set()).update(candidates)

    def fresh(self, base: int, parts: Sequence[Part]) -> int:
        """How many of ``parts`` were never tried on ``base``."""
        tried = self._tried.get(base, set())
        return sum(part.candidate not in tried for part in parts)

    def on(self, lineage: Lineage, base: Node) -> tuple[Part, ...]:
        """The parts as edits of ``base``, largest gain first.

        They share a base with it: they were made from it, or from a node it descends from and touch
        nothing that was changed on the way.
        """
        path = lineage.path(base)
        place = {node.number: index for index, node in enumerate(path)}
        found = []
        for part in self._parts.values():
            if part.base not in place or part.node in place:
                continue
            moved: tuple[Edit, ...] | None = part.edits
            for step in path[place[part.base] + 1:]:
                # Worked out once: this is asked whenever a worker is free.
                key = (part.candidate, step.number)
                if key not in self._moved:
                    self._moved[key] = None if moved is None else rebased(moved, step.edits)
                moved = self._moved[key]
            if moved is not None:
                found.append(replace(part, edits=moved))
        return tuple(sorted(found, key=lambda p: (-p.ratio, p.candidate)))


def promise(parts: Sequence[Part]) -> float:
    """The speedup over their base, if compatible parts gained together what they did alone."""
    together: tuple[Edit, ...] = ()
    total = 0.0
    for part in parts:
        union = joined(together, part.edits) if together else part.edits
        if union is not None:
            together = union
            total += math.log(part.ratio)
    return math.exp(total)
