"""G4: better than the best verified so far, by more than noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from asmevo.device.device import Timing
from asmevo.gates.interval import speedup_interval
from asmevo.gates.latency import SettingError, worst_variation
from asmevo.gates.verdict import Gate, JsonValue, Outcome, Verdict


@dataclass(frozen=True)
class CommitGate:
    """Passes when s(K') >= m* = (1 + max(epsilon, k * c_v)) * s(K*), and s(K') > s_floor.

    s(K*) is the speedup of the best candidate verified so far (1 for the original). Beyond that, no
    single dispatch may be slower than ``dispatch_floor`` times the original, so that one shape
    cannot carry the mean, and the whole 95 % interval of a measured speedup must lie above the
    floor.
    """

    epsilon: float = 0.002
    k: float = 0.85
    s_floor: float = 1.0
    dispatch_floor: float = 0.98
    gate: Gate = Gate.G4

    def __post_init__(self) -> None:
        for name in ("epsilon", "k", "s_floor", "dispatch_floor"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise SettingError(
                    f"gates.{name} must be finite and not negative, not {getattr(self, name)}"
                )

    def threshold(self, best: float, variation: float) -> float:
        """m*: the least speedup worth a commit."""
        return (1.0 + max(self.epsilon, self.k * variation)) * best

    def judge(
        self, speedup: float | None, timings: Sequence[tuple[Timing, Timing]], best: float
    ) -> Verdict:
        """``timings`` pairs the original's and the candidate's timing of each timed dispatch."""
        if speedup is None or not timings:
            return Verdict(self.gate, Outcome.MISSING, "no-timing", "the candidate was not timed")
        variation = worst_variation(timings)
        threshold = self.threshold(best, variation)
        slowest = min(old.median_us / new.median_us for old, new in timings)
        low, high = speedup_interval(timings)
        evidence: dict[str, JsonValue] = {
            "speedup": speedup, "interval": [low, high], "threshold": threshold, "best": best,
            "c_v": variation, "slowest_dispatch": slowest,
        }

        def verdict(outcome: Outcome, code: str, reason: str) -> Verdict:
            return Verdict(self.gate, outcome, code, reason, evidence)

        if speedup <= self.s_floor:
            return verdict(
                Outcome.FAIL, "below-floor",
                f"{speedup:.4f}x is not above the floor of {self.s_floor:g}x",
            )
        if slowest < self.dispatch_floor:
            return verdict(
                Outcome.FAIL, "dispatch-slower",
                f"one dispatch runs at {slowest:.4f}x, below {self.dispatch_floor:g}x",
            )
        if low <= self.s_floor:
            return verdict(
                Outcome.FAIL, "uncertain",
                f"{speedup:.4f}x could as well be {low:.4f}x (95 % interval), which is not above "
                f"the floor of {self.s_floor:g}x",
            )
        if speedup < threshold:
            return verdict(
                Outcome.FAIL, "not-better",
                f"{speedup:.4f}x is below m* = {threshold:.4f}x (best so far {best:.4f}x)",
            )
        return verdict(Outcome.PASS, "ok", f"{speedup:.4f}x reaches m* = {threshold:.4f}x")
