"""Which rule to ask next: the one that should gain most per second on this kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from asmevo.profile.profile import StallCause
from asmevo.propose.bandit import Pace
from asmevo.propose.proposal import Direction, Evidence, Experience, Feedback
from asmevo.propose.rule import Rule

# What a line of attack can make shorter. A cause that a profiler does not know is any.
_CAUSES: Mapping[Direction, frozenset[StallCause]] = {
    Direction.LATENCY_HIDING: frozenset(
        {StallCause.VMCNT, StallCause.LGKMCNT, StallCause.BARRIER}),
    Direction.MEMORY_ACCESS: frozenset(
        {StallCause.VMCNT, StallCause.LGKMCNT, StallCause.UNIT_BUSY, StallCause.FETCH}),
    Direction.DEPENDENCY_CHAINS: frozenset(
        {StallCause.DEPENDENCY, StallCause.LGKMCNT, StallCause.UNIT_BUSY, StallCause.NOP}),
    Direction.SIMPLIFICATION: frozenset(
        {StallCause.DEPENDENCY, StallCause.UNIT_BUSY, StallCause.FETCH, StallCause.NOP}),
    Direction.REGISTER_PRESSURE: frozenset({StallCause.OCCUPANCY}),
}
# Of a rule's expected gain what is left where nothing of the kind stalls: issuing takes time, too.
_LEAST_SHARE = 0.05
# Of what nobody has measured: as much as of the middling ones.
_UNKNOWN = 0.003
# Seconds of a run that say as much of a rule as what is known from others.
_PRIOR_SECONDS = 4.0


@dataclass
class RuleOrder:
    """Rates rules by gain per nominal second, see `Pace`: what ``expected`` says by rule's name
    (natural logarithm a proposal), what they did in this run and in this call so far, and how much
    of the stalled cycles in the hot windows is of a kind that the rule can help.
    """

    expected: Mapping[str, float]
    evidence: Evidence
    _paces: dict[str, Pace] = field(default_factory=dict)
    _best: float = 0.0

    def __post_init__(self) -> None:
        self._best = self.evidence.speedup
        self._stalls = _stalls(self.evidence)

    def rate(self, rule: Rule) -> float:
        """Gain per second to expect of another proposal."""
        pace = self._pace(rule.name)
        prior = self.expected.get(rule.name, _UNKNOWN)
        gain = (prior * _PRIOR_SECONDS + pace.gain) / (_PRIOR_SECONDS + pace.seconds)
        return gain * self._share(rule.direction)

    def learn(self, name: str, feedback: Feedback) -> None:
        """Count what became of a proposal."""
        gain = 0.0
        if feedback.passed and feedback.speedup is not None and feedback.speedup > self._best:
            gain = math.log(feedback.speedup / self._best)
            self._best = feedback.speedup
        self._paces[name] = self._pace(name).after(feedback, gain, overhead=0.0, measured=False)

    def _pace(self, name: str) -> Pace:
        known = self._paces.get(name)
        if known is None:
            known = self._paces[name] = Pace.of(
                self.evidence.rules.get(name, Experience()), overhead=0.0, measured=False)
        return known

    def _share(self, direction: Direction) -> float:
        total = sum(self._stalls.values())
        if not total:
            return 1.0
        causes = _CAUSES[direction] | {StallCause.OTHER}
        share = sum(self._stalls.get(cause, 0) for cause in causes) / total
        return max(share, _LEAST_SHARE)


def _stalls(evidence: Evidence) -> dict[StallCause, int]:
    found: dict[StallCause, int] = {}
    for window in evidence.windows:
        for cause, cycles in window.causes.items():
            found[cause] = found.get(cause, 0) + cycles
    return found
