"""Putting verified candidates together, one at a time, with every step through the gates.

Two good edits together may be wrong or useless, so nothing is taken from what each of them did
alone but the order in which they are tried. Only regions that are disjoint or complementary (the
very same edit in both counts once) are put together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from asmevo.codeobject.assembly import Edit
from asmevo.propose.proposal import Direction, Feedback, Proposal
from asmevo.search.events import ParentFact

INTEGRATOR = "integrator"
COMPOSITION = "composition"


@dataclass(frozen=True, slots=True)
class Part:
    """A verified candidate as something to compose: ``edits`` apply to node ``base``.

    ``ratio`` is its verified speedup over that of the base it was verified on, ``speedup`` the one
    over the original; ``node`` is set for a commit. ``sources`` are the parts of a composition.
    """

    candidate: str
    base: int
    edits: tuple[Edit, ...]
    ratio: float
    speedup: float
    rule: str
    direction: Direction
    proposer: str = ""
    assumption: str = ""
    node: int | None = None
    sources: tuple[str, ...] = ()

    def fact(self) -> ParentFact:
        return ParentFact(self.candidate, self.speedup, self.node, self.rule)


def disjoint(first: Sequence[Edit], second: Sequence[Edit]) -> bool:
    """Whether edits to one base touch no instruction and no place between two in common."""
    ranges = sorted((e.start, e.stop) for e in (*first, *second))
    for (start, stop), (after, end) in pairwise(ranges):
        # Two insertions in one place have no order; one in front of a replacement has.
        if after < stop or (start == stop == after == end):
            return False
    return True


def joined(first: Sequence[Edit], second: Sequence[Edit]) -> tuple[Edit, ...] | None:
    """Edits that do what both do; ``None`` where their regions are at odds or nothing is added."""
    shared = {_key(edit) for edit in first}
    added = [edit for edit in second if _key(edit) not in shared]
    if not added or not disjoint(first, added):
        return None
    return tuple(sorted((*first, *added), key=lambda e: (e.start, e.stop)))


def rebased(edits: Iterable[Edit], over: Sequence[Edit]) -> tuple[Edit, ...] | None:
    """Edits of one base as edits of what ``over`` makes of it; ``None`` where they are at odds."""
    wanted = tuple(edits)
    shared = {_key(edit) for edit in over}
    wanted = tuple(edit for edit in wanted if _key(edit) not in shared)
    if not wanted or not disjoint(over, wanted):
        return None
    # Disjoint: an edit of ``over`` is wholly in front of a wanted one or wholly behind it.
    before = sorted(over, key=lambda e: (e.stop, e.start))
    stops = [edit.stop for edit in before]
    shifts = [0, *accumulate(len(e.lines) - (e.stop - e.start) for e in before)]
    out = []
    for edit in wanted:
        shift = shifts[bisect_right(stops, edit.start)]
        out.append(replace(edit, start=edit.start + shift, stop=edit.stop + shift))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a composition: the proposal, and the two verified candidates it joins."""

    proposal: Proposal
    parents: tuple[ParentFact, ...]


class Integration:
    """Composes parts on one base: adds one, has it judged, keeps it or drops it.

    A step is kept when it passes every gate up to G3 and is faster than both of its parents.
    """

    def __init__(self, base: ParentFact, parts: Sequence[Part]) -> None:
        self._base = base
        self._parts = tuple(parts)
        self.kept: tuple[Part, ...] = ()
        self.speedup = base.speedup

    def steps(self) -> Generator[Step, Feedback | None, None]:
        """Each step; send what became of it."""
        edits: tuple[Edit, ...] = ()
        above = self._base
        for part in self._parts:
            together = joined(edits, part.edits) if edits else part.edits
            if together is None:
                continue
            feedback = yield self._step(part, together, above)
            if feedback is None or not feedback.passed or feedback.speedup is None:
                continue
            # The first one alone, on the base it was verified on, is no composition yet.
            alone = not self.kept and part.base == self._base.node
            if feedback.speedup > max(self.speedup, 0.0 if alone else part.speedup):
                edits = together
                self.kept = (*self.kept, part)
                self.speedup = feedback.speedup
                above = ParentFact(
                    chained(*(p.candidate for p in self.kept)), self.speedup,
                    rule="+".join(dict.fromkeys(p.rule for p in self.kept)))

    def _step(self, part: Part, edits: tuple[Edit, ...], above: ParentFact) -> Step:
        names = ", ".join(p.rule for p in (*self.kept, part))
        assumptions = dict.fromkeys(p.assumption for p in (*self.kept, part) if p.assumption)
        return Step(
            Proposal(
                edits, COMPOSITION, part.direction, f"verified one by one: {names}",
                "; ".join(assumptions), INTEGRATOR),
            (above, part.fact()),
        )


def chained(*names: str) -> str:
    """The name of candidates put together, until what they make has one of its own."""
    return "+".join(names)


def _key(edit: Edit) -> tuple[int, int, tuple[str, ...]]:
    return edit.start, edit.stop, edit.lines
