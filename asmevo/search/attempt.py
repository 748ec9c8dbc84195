"""What a worker is asked to do, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from asmevo.codeobject.assembly import Assembly
from asmevo.device.device import Timing
from asmevo.gates.verdict import Verdict
from asmevo.propose.proposal import (
    NOTHING_SPENT,
    Direction,
    Experience,
    Failure,
    Feedback,
    Proposal,
    Spending,
)
from asmevo.search.composition import Part
from asmevo.search.events import ParentFact
from asmevo.search.lineage import Node, Resources

BARREN = 400
"""Proposals in a row that bring nothing to judge, after which a proposer counts as exhausted."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a candidate that was judged before; see `Feedback`.

    ``own``: in this very assignment, by a worker that was lost or in an earlier sitting of the run.
    """

    gate: str = ""
    code: str = ""
    reason: str = ""
    speedup: float | None = None
    seconds: float = 0.0
    own: bool = True

    def feedback(self, proposal: Proposal) -> Feedback:
        return Feedback(proposal, self.gate, self.code, self.reason, self.speedup, self.seconds)


@dataclass(frozen=True, slots=True)
class Block:
    """A kind of proposal that failed too often to be judged again: what it failed with."""

    gate: str
    code: str
    count: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """Improve ``base`` along ``directions`` (all when empty) with at most ``attempts`` candidates.

    ``seen`` are fingerprints that were judged before, ``target`` the speedup at which a candidate
    is worth handing back at once. ``parts`` are verified candidates to be composed on the base;
    then no proposer is asked. ``blocked`` are kinds that are not judged any more, by rule and
    region. ``known`` are candidates whose result is given back without judging them again, ``done``
    attempts of this assignment that were counted already, and so many fresh candidates as ``skip``
    are passed over, since they cost a worker its life. After ``barren`` proposals in a row that are
    none to judge, nothing is left. ``tokens`` and ``cost`` are what proposing
    may cost. The other fields are for `Evidence`.
    """

    worker: int
    base: Node
    directions: tuple[Direction, ...]
    attempts: int
    target: float
    seen: frozenset[str] = frozenset()
    failures: tuple[Failure, ...] = ()
    seed: int = 0
    experience: Mapping[str, Experience] = field(default_factory=dict)
    rules: Mapping[str, Experience] = field(default_factory=dict)
    insights: tuple[str, ...] = ()
    number: int = 0
    parts: tuple[Part, ...] = ()
    blocked: Mapping[tuple[str, str], Block] = field(default_factory=dict)
    known: Mapping[str, Judged] = field(default_factory=dict)
    done: int = 0
    skip: int = 0
    barren: int = BARREN
    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A proposal and the verdicts of G0 to G3 on it. G4 belongs to the controller.

    ``code`` are the built object's bytes, ``None`` when it did not build; ``assembly`` the edited
    text of a candidate that passed; ``timings`` pairs the original's and the candidate's timing of
    each timed dispatch. ``exposed_by`` is the SHA-256 of the dispatch on which it was wrong; it is
    not for proposers, as it may be held out. ``seconds`` is what judging it took, ``proposing`` the
    seconds in the proposer since the attempt before, ``spent`` what that cost. ``parents`` are
    those of a composition.
    """

    worker: int
    base: int
    proposal: Proposal
    fingerprint: str
    verdicts: tuple[Verdict, ...]
    assembly: Assembly | None = None
    code: bytes | None = None
    sha256: str | None = None
    speedup: float | None = None
    timings: tuple[tuple[Timing, Timing], ...] = ()
    resources: Resources | None = None
    exposed_by: str | None = None
    seconds: float = 0.0
    proposing: float = 0.0
    spent: Spending = NOTHING_SPENT
    parents: tuple[ParentFact, ...] = ()
    assignment: int = 0

    @property
    def passed(self) -> bool:
        """Whether every gate up to G3 passed."""
        return bool(self.verdicts) and all(v.passed for v in self.verdicts)

    def judged(self) -> Judged:
        """What its proposer may know of it."""
        stopped = next((v for v in self.verdicts if not v.passed), None)
        if stopped is None:
            return Judged(speedup=self.speedup, seconds=self.seconds)
        return Judged(stopped.gate.value, stopped.code, stopped.reason, self.speedup, self.seconds)


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of an assignment; ``exhausted`` when the proposer had nothing new left.

    ``duplicates`` were not judged again, ``blocked`` not judged for their kind. ``busy`` is the
    worker's seconds and ``gates`` those of them inside the gates; ``proposing`` are seconds in the
    proposer, and ``spent`` what it cost, that no attempt has accounted for. ``kept`` names the
    parts in the final state of a composition, whose verified speedup is ``speedup``.
    """

    assignment: int
    exhausted: bool
    duplicates: int = 0
    blocked: int = 0
    busy: float = 0.0
    gates: float = 0.0
    proposing: float = 0.0
    spent: Spending = NOTHING_SPENT
    kept: tuple[str, ...] = ()
    speedup: float = 1.0


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker that died, hung, or met an error that is no candidate's."""

    assignment: int
    reason: str


Step = Attempt | Finish | Lost
