"""G3: the candidate is timed against the original."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from asmevo.device.device import DeviceFault, Timing, UnsupportedError
from asmevo.dispatch.comparison import Tolerance, compare
from asmevo.errors import AsmEvoError
from asmevo.gates.condition import condition
from asmevo.gates.interval import speedup_interval
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, JsonValue, Outcome, Verdict


class SettingError(AsmEvoError):
    """A gate's setting makes no sense."""


# Original and candidate take turns in blocks, each pair of blocks the other way round than the
# one before it: A B B A, so that a drifting clock favours neither.
_BLOCKS = 4


@dataclass(frozen=True)
class LatencyGate:
    """Times original and candidate on every timed dispatch.

    A measuring device is first kept busy for ``warmup_seconds`` (clocks take 400 ms and more to
    ramp up on an MI300), and then gives ``samples`` timed runs of either in turns, ``warmup``
    untimed ones in front of every block; after each block of the candidate its results are looked
    at again. A deterministic model is asked once: it times the very launch that was verified, and
    its caches are cold. A time below what the bytes and operations of the launch allow fails.
    """

    samples: int = 20
    warmup: int = 5
    warmup_seconds: float = 0.5
    tolerance: Tolerance = field(default_factory=Tolerance)
    gate: Gate = Gate.G3
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.samples < 1 or self.warmup < 0:
            raise SettingError(
                f"gates.samples must be at least 1 and gates.warmup at least 0, not {self.samples} "
                f"and {self.warmup}"
            )
        if not 0.0 <= self.warmup_seconds < math.inf:
            raise SettingError(f"gates.warmup_seconds must be finite and not negative, not "
                               f"{self.warmup_seconds}")

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        if trial.loaded is None:
            return Verdict(self.gate, Outcome.MISSING, "not-loaded", "the candidate is not loaded")
        baseline = trial.baseline
        pairs: list[tuple[Timing, Timing]] = []
        try:
            for index in baseline.timed_dispatches:
                pairs.append(self._timed(trial, index))
        except _LateDifference as late:
            return Verdict(self.gate, Outcome.FAIL, "late-difference", str(late))
        except (DeviceFault, UnsupportedError) as error:
            return Verdict(self.gate, Outcome.MISSING, "not-timed", str(error))
        if not pairs or any(not 0.0 < t.median_us < math.inf for pair in pairs for t in pair):
            return Verdict(self.gate, Outcome.MISSING, "no-timing", "no dispatch gave a latency")
        speedup = geometric_mean([old.median_us / new.median_us for old, new in pairs])
        low, high = speedup_interval(pairs)
        evidence: dict[str, JsonValue] = {
            "speedup": speedup,
            "interval": [low, high],
            "variation": worst_variation(pairs),
            "source": pairs[0][1].source.value,
            "device": pairs[0][1].device,
            "caches": "cold" if baseline.device.deterministic else "warm",
            "dispatches": [
                {
                    "dispatch": new.dispatch, "original_us": old.median_us,
                    "candidate_us": new.median_us, "speedup": old.median_us / new.median_us,
                }
                for old, new in pairs
            ],
        }
        for index, (_, new) in zip(baseline.timed_dispatches, pairs, strict=True):
            floor = baseline.floor(index)
            if floor is not None and new.median_us < floor.microseconds:
                return Verdict(
                    self.gate, Outcome.FAIL, "faster-than-possible",
                    f"dispatch '{new.dispatch}' took {new.median_us:.4g} us; {floor.reason} alone "
                    f"take {floor.microseconds:.4g} us", evidence)
        trial.timings, trial.speedup = pairs, speedup
        reason = f"{trial.speedup:.4f}x over {len(pairs)} dispatches ({pairs[0][1].source.value})"
        return Verdict(self.gate, Outcome.PASS, "ok", reason, evidence)

    def _timed(self, trial: Trial, index: int) -> tuple[Timing, Timing]:
        baseline, loaded = trial.baseline, trial.loaded
        assert loaded is not None
        if baseline.device.deterministic:
            old = baseline.timing(index, samples=1, warmup=0)
            return old, baseline.time(loaded, index, samples=1, warmup=0)
        busy_until = time.monotonic() + self.warmup_seconds
        while time.monotonic() < busy_until:
            baseline.time(baseline.loaded, index, samples=1, warmup=self.warmup)
        times: tuple[list[Timing], list[Timing]] = ([], [])
        sizes = [(self.samples + k) // _BLOCKS for k in range(_BLOCKS)]
        for number, size in enumerate(size for size in sizes if size):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                kernel = loaded if which else baseline.loaded
                times[which].append(
                    baseline.time(kernel, index, samples=size, warmup=self.warmup))
                if which:
                    self._check_results(trial, index)
        return _joined(times[0]), _joined(times[1])

    def _check_results(self, trial: Trial, index: int) -> None:
        """A candidate may be right when it is verified and wrong once it has been timed."""
        baseline, loaded = trial.baseline, trial.loaded
        assert loaded is not None
        dispatch = baseline.prepared(index, 0)
        after = loaded.run(dispatch, condition(0, baseline.seed).state,
                           limit=baseline.instruction_limit(index))
        for outcome in compare(dispatch, baseline.reference(index, 0), after.regions,
                               self.tolerance, baseline.noise(index)):
            if not outcome.equal:
                raise _LateDifference(
                    f"dispatch '{dispatch.name}', region '{outcome.region}': {outcome.code} after "
                    "timed runs, though it was equal before")


class _LateDifference(Exception):  # noqa: N818 - a finding, not an error
    """What a timed candidate leaves is no longer the original's."""


def _joined(blocks: Sequence[Timing]) -> Timing:
    first = blocks[0]
    samples = tuple(sample for block in blocks for sample in block.samples_us)
    return Timing(first.dispatch, samples, first.source, first.device, first.warmup)


def geometric_mean(ratios: list[float]) -> float:
    """Geometric mean of positive ratios."""
    return math.exp(math.fsum(math.log(r) for r in ratios) / len(ratios))


def worst_variation(pairs: Sequence[tuple[Timing, Timing]]) -> float:
    """The largest coefficient of variation over all timings involved."""
    return max(timing.variation for pair in pairs for timing in pair)
