"""Several proposers, of which the one that gains most per second gets most of the time."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from asmevo.propose.bandit import Pace
from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import (
    NOTHING_SPENT,
    Evidence,
    Experience,
    Feedback,
    Prepares,
    Proposal,
    Proposals,
    Proposer,
    Spender,
    Spending,
)

# Some take seconds for a proposal, and know one direction only.
_ASTRAY = 8
_CLOCKS = ("nominal", "measured")


class MixedProposer:
    """A bandit over other proposers, by accepted speedup per second.

    Each of ``proposers`` first gets ``first`` proposals, in their order; then the next is drawn by
    what each has gained per second in this run, its experience before this call and the feedback
    within it. Old gains fade with ``half_life`` (seconds without another). A proposer that has
    nothing left drops out for this call, and so does one of which ``patience`` proposals in a row
    were duplicates, or eight along directions that are not asked for.

    With ``clock="nominal"`` a proposal counts with the seconds that judging one typically takes
    plus those of ``overhead`` (by name) for making it, and the same seed gives the same choices;
    ``"measured"`` takes the time that both took, which no two runs share.

    Every proposal carries the name of the proposer that it came from.
    """

    def __init__(
        self,
        proposers: Mapping[str, Proposer | None],
        first: int = 4,
        half_life: float = 60.0,
        patience: int = 50,
        clock: str = "nominal",
        overhead: Mapping[str, float] | None = None,
    ) -> None:
        self._proposers = {name: p for name, p in proposers.items() if p is not None}
        self._first, self._half_life, self._patience = first, half_life, patience
        self._measured = clock == "measured"
        self._overhead = dict(overhead or {})
        if not self._proposers:
            raise ProposerError("proposer=mixed needs at least one of proposer.proposers")
        for name, proposer in self._proposers.items():
            if not isinstance(proposer, Proposer):
                raise ProposerError(f"proposer.proposers.{name} is no proposer")
        if first < 0 or not half_life > 0 or patience < 1:
            raise ProposerError(
                "proposer.first must not be negative, half_life more than 0, patience at least 1")
        if clock not in _CLOCKS:
            raise ProposerError(
                f"proposer.clock must be 'nominal' or 'measured', not '{clock}'")
        if any(not seconds >= 0 for seconds in self._overhead.values()):
            raise ProposerError("proposer.overhead must not be negative")

    def prepare(self, folder: Path) -> None:
        """Have those get ready that need something."""
        for proposer in self._proposers.values():
            if isinstance(proposer, Prepares):
                proposer.prepare(folder)

    @property
    def spent(self) -> Spending:
        """What those that cost money have spent."""
        return sum((p.spent for p in self._proposers.values() if isinstance(p, Spender)),
                   NOTHING_SPENT)

    def propose(self, evidence: Evidence) -> Proposals:
        """Yield proposals of all, each as its turn comes."""
        chance = random.Random(evidence.seed)  # noqa: S311 - reproducible, not secret
        best = evidence.speedup
        arms = [self._arm(name, proposer, evidence) for name, proposer in self._proposers.items()]
        try:
            while arms:
                arm = self._next(arms, chance)
                proposal = arm.next() if arm.silent < self._patience else None
                if proposal is None or arm.astray >= _ASTRAY:
                    arms.remove(arm)
                    arm.proposals.close()
                    continue
                if evidence.directions and proposal.direction not in evidence.directions:
                    arm.feedback = None
                    arm.astray += 1
                    continue
                arm.astray = 0
                feedback = yield proposal
                gain = _gain(feedback, best)
                best *= math.exp(gain)
                overhead = arm.took if self._measured else self._overhead.get(arm.name, 0.0)
                arm.told(feedback, gain, overhead, self._measured)
        finally:
            for arm in arms:
                arm.proposals.close()

    def _arm(self, name: str, proposer: Proposer, evidence: Evidence) -> _Arm:
        experience = evidence.experience.get(name, Experience())
        pace = Pace.of(
            experience, overhead=self._overhead.get(name, 0.0), measured=self._measured)
        return _Arm(name, proposer.propose(evidence), pace, experience.proposed)

    def _next(self, arms: list[_Arm], chance: random.Random) -> _Arm:
        for arm in arms:
            if arm.proposed < self._first:
                return arm
        return max(arms, key=lambda arm: arm.pace.draw(chance, self._half_life))


@dataclass
class _Arm:
    """One proposer at work.

    ``silent`` counts its latest proposals of which nothing was heard, ``astray`` those along other
    directions; ``took`` is the seconds that making the last one took.
    """

    name: str
    proposals: Proposals
    pace: Pace
    proposed: int
    silent: int = 0
    astray: int = 0
    feedback: Feedback | None = None
    made: Proposal | None = None
    took: float = 0.0

    def next(self) -> Proposal | None:
        """Its next proposal, told what became of the one before; ``None`` when it has no more."""
        started = time.perf_counter()
        try:
            self.made = self.proposals.send(self.feedback)
        except StopIteration:
            return None
        self.took = time.perf_counter() - started
        return replace(self.made, proposer=self.name)

    def told(
        self, feedback: Feedback | None, gain: float, overhead: float, measured: bool
    ) -> None:
        assert self.made is not None
        # It hears of the proposal that it made, not of the one with its name on it.
        self.feedback = None if feedback is None else replace(feedback, proposal=self.made)
        if feedback is None or feedback.duplicate:
            self.silent += 1
            return
        self.silent = 0
        self.proposed += 1
        self.pace = self.pace.after(feedback, gain, overhead=overhead, measured=measured)


def _gain(feedback: Feedback | None, best: float) -> float:
    """The logarithm of what a candidate gained on the best before; 0 when it gained nothing."""
    if feedback is None or not feedback.passed or feedback.speedup is None:
        return 0.0
    return max(0.0, math.log(feedback.speedup / best)) if feedback.speedup > 0 else 0.0
