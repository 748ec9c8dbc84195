"""G3: the candidate is timed against the original."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from asmevo.device.device import DeviceFault, Timing, UnsupportedError
from asmevo.errors import AsmEvoError
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, JsonValue, Outcome, Verdict


class SettingError(AsmEvoError):
    """A gate's setting makes no sense."""


@dataclass(frozen=True)
class LatencyGate:
    """Times original and candidate on every timed dispatch.

    On hardware the order is original, candidate, candidate, original, so that a drifting clock
    favours neither. A deterministic model is asked once. ``samples`` counts timed runs after
    ``warmup`` untimed ones.
    """

    samples: int = 20
    warmup: int = 5
    gate: Gate = Gate.G3
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.samples < 1 or self.warmup < 0:
            raise SettingError(
                f"gates.samples must be at least 1 and gates.warmup at least 0, not {self.samples} "
                f"and {self.warmup}"
            )

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        if trial.loaded is None:
            return Verdict(self.gate, Outcome.MISSING, "not-loaded", "the candidate is not loaded")
        pairs: list[tuple[Timing, Timing]] = []
        try:
            for index in trial.baseline.timed_dispatches:
                pairs.append(self._timed(trial, index))
        except (DeviceFault, UnsupportedError) as error:
            return Verdict(self.gate, Outcome.MISSING, "not-timed", str(error))
        if not pairs or any(new.median_us <= 0.0 or old.median_us <= 0.0 for old, new in pairs):
            return Verdict(self.gate, Outcome.MISSING, "no-timing", "no dispatch gave a latency")
        trial.timings = pairs
        trial.speedup = geometric_mean([old.median_us / new.median_us for old, new in pairs])
        evidence: dict[str, JsonValue] = {
            "speedup": trial.speedup,
            "variation": worst_variation(pairs),
            "source": pairs[0][1].source.value,
            "device": pairs[0][1].device,
            "dispatches": [
                {
                    "dispatch": new.dispatch, "original_us": old.median_us,
                    "candidate_us": new.median_us, "speedup": old.median_us / new.median_us,
                }
                for old, new in pairs
            ],
        }
        reason = f"{trial.speedup:.4f}x over {len(pairs)} dispatches ({pairs[0][1].source.value})"
        return Verdict(self.gate, Outcome.PASS, "ok", reason, evidence)

    def _timed(self, trial: Trial, index: int) -> tuple[Timing, Timing]:
        baseline, loaded = trial.baseline, trial.loaded
        assert loaded is not None
        if baseline.device.deterministic:
            old = baseline.timing(index, samples=1, warmup=0)
            return old, baseline.time(loaded, index, samples=1, warmup=0)
        half, rest = -(-self.samples // 2), self.samples // 2
        first_old = baseline.timing(index, samples=half, warmup=self.warmup)
        first_new = baseline.time(loaded, index, samples=half, warmup=self.warmup)
        if rest == 0:
            return first_old, first_new
        second_new = baseline.time(loaded, index, samples=rest, warmup=self.warmup)
        second_old = baseline.timing(index, samples=rest, warmup=self.warmup)
        return _joined(first_old, second_old), _joined(first_new, second_new)


def _joined(a: Timing, b: Timing) -> Timing:
    return Timing(a.dispatch, a.samples_us + b.samples_us, a.source, a.device, a.warmup)


def geometric_mean(ratios: list[float]) -> float:
    """Geometric mean of positive ratios."""
    return math.exp(math.fsum(math.log(r) for r in ratios) / len(ratios))


def worst_variation(pairs: Sequence[tuple[Timing, Timing]]) -> float:
    """The largest coefficient of variation over all timings involved."""
    return max(timing.variation for pair in pairs for timing in pair)
