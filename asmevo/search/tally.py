"""Counts of one search, all of them made from its events."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from asmevo.gates.verdict import Gate, Outcome
from asmevo.propose.proposal import Direction, Experience
from asmevo.search.events import Attempted, Fault, Finished


@dataclass
class Record:
    """What one proposer or rule has done; see `Experience`."""

    proposed: int = 0
    passed: int = 0
    accepted: int = 0
    gain: float = 0.0
    seconds: float = 0.0
    dry: int = 0

    def experience(self) -> Experience:
        return Experience(
            self.proposed, self.passed, self.accepted, self.gain, self.seconds, self.dry)


@dataclass(frozen=True, slots=True)
class Share:
    """What one part of a composition has of its gain."""

    rule: str
    proposer: str
    direction: Direction
    share: float


@dataclass
class Tally:
    """``verdicts[gate][outcome]`` counts candidates, not repeats.

    ``duplicates`` were judged before, whether a worker saw that itself or two were at it at the
    same time. ``tried`` counts candidates by node and direction, ``gained`` adds up the logarithms
    by which commits beat the best before, by direction. A composition counts as the
    integrator's, and what it gained is shared out to the rules and proposers of its parts.
    """

    attempts: int = 0
    duplicates: int = 0
    blocked: int = 0
    faults: int = 0
    last_fault: str = ""
    commits: int = 0
    compositions: int = 0
    verdicts: dict[Gate, Counter[Outcome]] = field(
        default_factory=lambda: {gate: Counter() for gate in Gate}
    )
    rules: dict[str, Record] = field(default_factory=lambda: defaultdict(Record))
    proposers: dict[str, Record] = field(default_factory=lambda: defaultdict(Record))
    tried: Counter[tuple[int, Direction]] = field(default_factory=Counter)
    gained: dict[Direction, float] = field(default_factory=lambda: defaultdict(float))
    gate_seconds: float = 0.0
    busy_seconds: float = 0.0
    proposing_seconds: float = 0.0

    def attempted(self, event: Attempted,
                  parts: Sequence[Share] | None = None) -> None:
        """Count an attempt; ``parts`` say how a composition's gain is shared out."""
        self.gate_seconds += event.took
        self.proposing_seconds += event.proposing
        if event.duplicate:
            self.duplicates += 1
            return
        self.attempts += 1
        # Of a gate's repeats the last one decides: they stop at the first that does not pass.
        for gate, verdict in {v.gate: v for v in event.verdicts}.items():
            self.verdicts[Gate(gate)][Outcome(verdict.outcome)] += 1
        for record in (self.rules[event.rule], self.proposers[event.proposer]):
            record.proposed += 1
            record.passed += event.passed
            record.accepted += event.node is not None
            record.seconds += event.took
            record.dry = 0 if event.node is not None else record.dry + 1
        if not event.parents:
            self.tried[event.base, Direction(event.direction)] += 1
        if event.node is None:
            return
        self.commits += 1
        self.compositions += bool(event.parents)
        whole = Share(event.rule, event.proposer, Direction(event.direction), 1.0)
        for part in parts or (whole,):
            self.rules[part.rule].gain += part.share * event.gain
            self.proposers[part.proposer].gain += part.share * event.gain
            self.gained[part.direction] += part.share * event.gain
            self.rules[part.rule].dry = self.proposers[part.proposer].dry = 0

    def finished(self, event: Finished) -> None:
        self.duplicates += event.duplicates
        self.blocked += event.blocked
        self.busy_seconds += event.busy
        self.proposing_seconds += event.proposing

    def fault(self, event: Fault) -> None:
        self.faults += 1
        self.last_fault = event.reason

    def experience(self) -> Mapping[str, Experience]:
        """By name of proposer."""
        return {name: record.experience() for name, record in sorted(self.proposers.items())}

    def rule_experience(self) -> Mapping[str, Experience]:
        return {name: record.experience() for name, record in sorted(self.rules.items())}


def shares(ratios: Mapping[str, float]) -> Mapping[str, float]:
    """How parts share what they gained together: by the logarithm of what each did alone."""
    weights = {name: math.log(max(ratio, 1.0)) for name, ratio in ratios.items()}
    total = math.fsum(weights.values())
    if not total > 0.0:
        return {name: 1.0 / len(ratios) for name in ratios}
    return {name: weight / total for name, weight in weights.items()}
