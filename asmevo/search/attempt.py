"""What a worker is asked to do, and what comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from asmevo.codeobject.assembly import Assembly
from asmevo.device.device import Timing
from asmevo.gates.verdict import Verdict
from asmevo.propose.proposal import Direction, Experience, Failure, Proposal
from asmevo.search.lineage import Node, Resources


@dataclass(frozen=True, slots=True)
class Assignment:
    """Improve ``base`` along ``directions`` (all when empty) with at most ``attempts`` candidates.

    ``seen`` are fingerprints that were judged before, ``target`` the speedup at which a candidate
    is worth handing back at once. The other fields are for `Evidence`.
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


@dataclass(frozen=True, slots=True)
class Attempt:
    """A proposal and the verdicts of G0 to G3 on it. G4 belongs to the controller.

    ``code`` are the built object's bytes, ``None`` when it did not build; ``timings`` pairs the
    original's and the candidate's timing of each timed dispatch. ``exposed_by`` is the SHA-256 of
    the dispatch on which it was wrong; it is not for proposers, as it may be held out. ``seconds``
    is what judging it took.
    """

    worker: int
    base: int
    proposal: Proposal
    fingerprint: str
    assembly: Assembly
    verdicts: tuple[Verdict, ...]
    code: bytes | None = None
    sha256: str | None = None
    speedup: float | None = None
    timings: tuple[tuple[Timing, Timing], ...] = ()
    resources: Resources | None = None
    exposed_by: str | None = None
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every gate up to G3 passed."""
        return bool(self.verdicts) and all(v.passed for v in self.verdicts)


@dataclass(frozen=True, slots=True)
class Report:
    """All attempts of one assignment; ``exhausted`` when the proposer had nothing new left."""

    assignment: Assignment
    attempts: tuple[Attempt, ...]
    exhausted: bool
    fault: str = ""


def fingerprint(assembly: Assembly, kernel: str) -> str:
    """A hash of a kernel body in which label names do not count.

    Candidates that differ in label names alone assemble to the same bytes.
    """
    body = assembly.body(kernel)
    order: dict[str, str] = {}
    for line in body.lines:
        for label in line.labels:
            order[label] = f"@{len(order)}"
    digest = hashlib.sha256()
    for line in body.lines:
        for label in line.labels:
            digest.update(f"{order[label]}:\n".encode())
        words = (order.get(word, word) for word in line.text.split())
        digest.update((" ".join(words) + "\n").encode())
    return digest.hexdigest()
