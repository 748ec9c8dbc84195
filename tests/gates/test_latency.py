"""G3 on a device that measures: order, warm-up, intervals, floors and results of timed runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.device.device import LaunchState, RunResult, Timing, TimingSource
from asmevo.dispatch.dispatch import Dispatch, ElementType, Region, Role
from asmevo.gates.baseline import Baseline
from asmevo.gates.floor import Floor
from asmevo.gates.interval import speedup_interval
from asmevo.gates.latency import LatencyGate, SettingError
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Outcome, Verdict
from asmevo.profile.profile import MemoryLevel
from asmevo.task.session import Session

OUT = Region("out", 0x10000, bytes(256), Role.OUTPUT, ElementType.F32, guard=16)
DISPATCH = Dispatch("d", "k", b"", (1, 1, 1), (64, 1, 1), (OUT,), ())


@dataclass
class Kernel:
    """Writes ones, takes ``us``, and leaves something else after ``wrong_after`` timed runs."""

    letter: str
    us: Iterator[float]
    asked: list[str] = field(default_factory=list)
    wrong_after: int | None = None
    timed: int = 0

    def run(self, dispatch: Dispatch, state: LaunchState, *,
            limit: int | None = None) -> RunResult:
        mapped = dispatch.regions[0].mapped
        late = self.wrong_after is not None and self.timed >= self.wrong_after
        values = np.full(64, 2.0 if late else 1.0, np.float32)
        return RunResult((mapped[:16] + values.tobytes() + mapped[-16:],), 1, 0.0)

    def time(self, dispatch: Dispatch, state: LaunchState, *, samples: int,
             warmup: int) -> Timing:
        self.asked.append(self.letter * samples)
        self.timed += samples
        return Timing(dispatch.name, tuple(itertools.islice(self.us, samples)),
                      TimingSource.MEASURED, "gpu", warmup)


@dataclass
class Gpu:
    name: str = "gpu"
    source: TimingSource = TimingSource.MEASURED
    deterministic: bool = False


def trial(original: Kernel, candidate: Kernel, floor: float | None = None) -> Trial:
    device: Any = Gpu()
    nothing: Any = None
    baseline = Baseline(nothing, "k", nothing, [DISPATCH], device)
    baseline.__dict__["loaded"] = original
    baseline._floors[0] = None if floor is None else Floor(floor, "64 bytes")
    loaded: Any = candidate
    return Trial(baseline, nothing, code_object=nothing, loaded=loaded)


def judged(made: Trial, samples: int = 8) -> Verdict:
    return LatencyGate(samples, warmup=1, warmup_seconds=0.0).judge(made, 0)


def test_blocks_go_a_b_b_a() -> None:
    asked: list[str] = []
    made = trial(Kernel("A", itertools.repeat(10.0), asked),
                 Kernel("B", itertools.repeat(8.0), asked))
    verdict = judged(made)
    assert asked == ["AA", "BB", "BB", "AA", "AA", "BB", "BB", "AA"]
    assert verdict.passed
    assert made.speedup == pytest.approx(1.25)
    assert verdict.evidence["interval"] == pytest.approx([1.25, 1.25])
    assert verdict.evidence["caches"] == "warm"
    assert len(made.timings[0][0].samples_us) == len(made.timings[0][1].samples_us) == 8


@pytest.mark.parametrize("samples", [1, 2, 3, 5, 20])
def test_all_samples_are_taken_of_both(samples: int) -> None:
    made = trial(Kernel("A", itertools.repeat(10.0)), Kernel("B", itertools.repeat(8.0)))
    assert judged(made, samples).passed
    assert {len(t.samples_us) for t in made.timings[0]} == {samples}


def test_a_drifting_clock_favours_neither() -> None:
    """Both get slower by the same amount a sample, whoever runs."""
    drift = iter(10.0 + 0.01 * n for n in range(1000))
    made = trial(Kernel("A", drift), Kernel("B", drift))
    assert judged(made, 40).passed
    assert made.speedup == pytest.approx(1.0, abs=1e-3)


def test_a_device_is_kept_busy_before_it_is_believed() -> None:
    asked: list[str] = []
    made = trial(Kernel("A", itertools.repeat(10.0), asked),
                 Kernel("B", itertools.repeat(8.0), asked))
    assert LatencyGate(4, warmup=1, warmup_seconds=0.01).judge(made, 0).passed
    assert asked[:20] == ["A"] * 20


@pytest.mark.parametrize("after", [1, 5, 8])
def test_right_at_first_and_wrong_later(after: int) -> None:
    made = trial(Kernel("A", itertools.repeat(10.0)),
                 Kernel("B", itertools.repeat(5.0), wrong_after=after))
    verdict = judged(made)
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "late-difference")
    assert made.speedup is None


def test_faster_than_possible() -> None:
    made = trial(Kernel("A", itertools.repeat(10.0)), Kernel("B", itertools.repeat(0.5)), floor=1.0)
    verdict = judged(made)
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "faster-than-possible")
    assert made.speedup is None
    assert not made.timings


@pytest.mark.parametrize("us", [0.0, float("inf"), float("nan"), -1.0])
def test_what_is_no_time_is_missing(us: float) -> None:
    made = trial(Kernel("A", itertools.repeat(10.0)), Kernel("B", itertools.repeat(us)))
    verdict = judged(made)
    assert (verdict.outcome, verdict.code) == (Outcome.MISSING, "no-timing")


def test_layer_norm_cannot_be_faster_than_its_bytes(session: Session) -> None:
    """M rows of 8192 bf16: two are read and two written for each."""
    index = session.baseline.timed_dispatches[-1]
    floor = session.baseline.floor(index)
    machine = session.device.machine  # type: ignore[attr-defined]
    assert floor is not None
    regions = session.baseline.dispatches[index].regions
    size = {r.name: len(r.data) for r in regions}
    least = sum(size[n] for n in ("in", "residual_in")) / 2
    assert floor.microseconds >= least / machine.bytes_per_clk[MemoryLevel.HBM] / machine.clock_mhz
    assert floor.microseconds < session.baseline.timing(index, samples=1, warmup=0).median_us


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_warming_up_ends(seconds: float) -> None:
    with pytest.raises(SettingError, match="warmup_seconds"):
        LatencyGate(warmup_seconds=seconds)


def timing(samples: list[float]) -> Timing:
    return Timing("d", tuple(samples), TimingSource.MEASURED, "gpu")


def test_noise_common_to_both_does_not_widen_the_interval() -> None:
    noise = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    low, high = speedup_interval([(timing(list(10 * noise)), timing(list(8 * noise)))])
    assert low == pytest.approx(1.25)
    assert high == pytest.approx(1.25)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Of 200 experiments with a true ratio of 1, about 95 % contain it."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        old, new = (timing(list(10 * rng.lognormal(0.0, 0.05, 20))) for _ in range(2))
        low, high = speedup_interval([(old, new)])
        held += low <= 1.0 <= high
    assert 0.88 <= held / 200 <= 1.0


@given(st.lists(st.floats(0.1, 100.0), min_size=1, max_size=9),
       st.lists(st.floats(0.1, 100.0), min_size=1, max_size=9))
def test_intervals_are_ordered_and_repeatable(a: list[float], b: list[float]) -> None:
    pairs = [(timing(a), timing(b))]
    low, high = speedup_interval(pairs)
    assert 0.0 < low <= high
    assert speedup_interval(pairs) == (low, high)
