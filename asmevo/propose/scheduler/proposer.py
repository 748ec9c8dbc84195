"""The proposer that schedules hot traces for a model of the machine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from asmevo.codeobject.assembly import Edit
from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Direction, Evidence, Feedback, Proposal, Proposals
from asmevo.propose.scheduler.layout import Layout, Scored
from asmevo.propose.scheduler.machine import MachineTimes
from asmevo.propose.scheduler.orders import HEURISTICS, Heuristic, listed
from asmevo.propose.scheduler.workshop import DISJOINT, Freedom, Variant, Workshop, hottest

NAME = "scheduler"
DIRECTION = Direction.LATENCY_HIDING
_NOISES = (0.1, 0.3, 0.8)
# Freedoms for which whole kernels are also made with arithmetic alone moved.
_PLAIN = 3
# Of traces this long only the first few heuristics are tried.
_LONG, _FEW = 400, 5


class SchedulerProposer:
    """List-schedules traces, waits and wait states included, and proposes what a model likes best.

    First come whole kernels, one for each freedom and for the best heuristic of each trace; then
    single traces, hottest first; then restarts with random priorities, of which the model's best
    are proposed, ``tries`` orders looked at for each. Traces whose own order was measured faster
    are put together in between. ``limit`` is the most proposals per call.
    """

    def __init__(self, machine: MachineTimes | None = None, tries: int = 40, restarts: int = 64,
                 distances: Sequence[float] = (1.0, 1.6), limit: int | None = None) -> None:
        if tries < 1 or restarts < 0 or not distances:
            raise ProposerError("the scheduler needs at least one try, distance and no fewer than "
                                "0 restarts")
        self._machine = machine or MachineTimes()
        self._tries = tries
        self._restarts = restarts
        self._distances = tuple(distances)
        self._limit = limit

    def propose(self, evidence: Evidence) -> Proposals:
        """Yield schedules, most promising first; feedback decides what is put together.

        Nothing where latency hiding is not asked for: a schedule is nothing else.
        """
        if evidence.directions and DIRECTION not in evidence.directions:
            return
        run = _Run(Workshop.of(evidence, self._machine), evidence, self._tries)
        left = self._limit
        for proposal, parts in run.proposals(self._freedoms(), self._restarts):
            feedback = yield proposal
            run.learn(parts, feedback)
            if left is not None:
                left -= 1
                if left <= 0:
                    return

    def _freedoms(self) -> list[Freedom]:
        found = []
        for distance in self._distances:
            for rename in (False, True):
                found += [Freedom(rename, True, True, distance),
                          Freedom(rename, False, True, distance)]
        opened = [replace(f, closed=False) for f in found]
        return [*found, *opened, *(replace(f, joined=False) for f in found)]


_Parts = tuple[Variant, tuple[tuple[Layout, Scored], ...]]


class _Run:
    """One call: what was proposed, and what came of it."""

    def __init__(self, workshop: Workshop, evidence: Evidence, tries: int) -> None:
        self._workshop = workshop
        self._evidence = evidence
        self._tries = tries
        self._seen: set[tuple[Edit, ...]] = {f.edits for f in evidence.failures}
        self._seen.add(())
        # By freedom and start of the trace: the fastest order alone, and its measured speedup.
        self._best: dict[Freedom, dict[int, tuple[float, Layout, Scored]]] = {}
        # Single traces that a gate has refused: nothing more of the kind.
        self._barred: set[tuple[Freedom, int]] = set()

    def learn(self, parts: _Parts, feedback: Feedback | None) -> None:
        variant, chosen = parts
        if feedback is None:
            return
        if len(chosen) == 1 and feedback.gate in ("G1", "G2"):
            self._barred.add((variant.freedom, chosen[0][0].trace.start))
        if len(chosen) != 1 or not feedback.passed or feedback.speedup is None:
            return
        layout, scored = chosen[0]
        best = self._best.setdefault(variant.freedom, {})
        known = best.get(layout.trace.start)
        if feedback.speedup > max(known[0] if known else 0.0, self._evidence.speedup):
            best[layout.trace.start] = (feedback.speedup, layout, scored)

    def proposals(self, freedoms: Sequence[Freedom], restarts: int) -> Iterator[
            tuple[Proposal, _Parts]]:
        for freedom in freedoms:
            variant = self._workshop.variant(freedom)
            if freedom.rename and not variant.is_renamed:
                continue
            chosen = [(m, best) for m in hottest(variant.layouts)
                      if (best := self._listed(m)).cost < m.score(m.original).cost]
            yield from self._made(variant, chosen, "all traces")
            if freedom in freedoms[:_PLAIN]:
                for heuristic in (h for h in HEURISTICS if h.anchored):
                    alike = [(m, m.score(listed(m, heuristic))) for m in hottest(variant.layouts)]
                    yield from self._made(variant, alike, f"all traces, {heuristic.name}")
        for freedom in freedoms:
            variant = self._workshop.variant(freedom)
            if freedom.rename and not variant.is_renamed:
                continue
            for layout in hottest(variant.layouts):
                for scored in self._ranked(layout)[:3]:
                    yield from self._made(variant, [(layout, scored)], "one trace")
            yield from self._together(variant)
        for number in range(restarts):
            freedom = freedoms[number % len(freedoms)]
            variant = self._workshop.variant(freedom)
            rng = random.Random(f"{self._evidence.seed} {number}")  # noqa: S311 - reproducible
            layouts = hottest(variant.layouts)[:6]
            for layout in layouts:
                scored = self._random(layout, rng)
                if scored.cost <= layout.score(layout.original).cost:
                    yield from self._made(variant, [(layout, scored)], "one trace, random restart")
            yield from self._together(variant)

    def _ranked(self, layout: Layout) -> list[Scored]:
        known = self._workshop.rankings
        if layout in known:
            return known[layout]
        count = len(HEURISTICS) if len(layout.original) < _LONG else _FEW
        found = {(o := listed(layout, h)): layout.score(o) for h in HEURISTICS[:count]}
        # The order as it is, with waits placed anew, is one as well.
        found[layout.original] = layout.score(layout.original)
        known[layout] = sorted(found.values(), key=lambda s: s.cost)
        return known[layout]

    def _listed(self, layout: Layout) -> Scored:
        return self._ranked(layout)[0]

    def _random(self, layout: Layout, rng: random.Random) -> Scored:
        best = layout.score(layout.original)
        for _ in range(self._tries):
            heuristic = replace(rng.choice(HEURISTICS), noise=rng.choice(_NOISES))
            scored = layout.score(listed(layout, heuristic, rng.randrange(1 << 30)))
            if scored.cost < best.cost:
                best = scored
        return best

    def _together(self, variant: Variant) -> Iterator[tuple[Proposal, _Parts]]:
        """All traces whose own schedule was measured faster than the base."""
        best = self._best.get(variant.freedom, {})
        if len(best) > 1:
            chosen = [(layout, scored) for _, layout, scored in
                      sorted(best.values(), key=lambda b: -b[0])]
            yield from self._made(variant, chosen, f"{len(chosen)} traces that are faster alone")

    def _made(self, variant: Variant, chosen: Sequence[tuple[Layout, Scored]],
              what: str) -> Iterator[tuple[Proposal, _Parts]]:
        chosen = [c for c in chosen
                  if (variant.freedom, c[0].trace.start) not in self._barred]
        edits = variant.edits(chosen, NAME) if chosen else ()
        if not edits and len(chosen) > 1:
            # Some part cannot be done: as many as can, hottest first.
            kept: list[tuple[Layout, Scored]] = []
            for part in chosen:
                if variant.edits([*kept, part], NAME):
                    kept.append(part)
            chosen, edits = kept, variant.edits(kept, NAME) if kept else ()
        if edits in self._seen:
            return
        self._seen.add(edits)
        before = sum(m.score(m.original).cost * m.weight for m, _ in chosen)
        after = sum(s.cost * m.weight for m, s in chosen)
        freedom = variant.freedom
        yield Proposal(
            edits, NAME, DIRECTION,
            f"{what}, {freedom.describe()}: by the model of one wave {100 * after / before:.1f} % "
            f"of the time in instructions from {', '.join(str(m.trace.start) for m, _ in chosen)}",
            DISJOINT if freedom.disjoint else "", NAME,
        ), (variant, tuple(chosen))


__all__ = ["Heuristic", "SchedulerProposer"]
