"""G4 is the formula of the specification, nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.device.device import Timing, TimingSource
from asmevo.gates.commit import CommitGate
from asmevo.gates.harness import from_settings
from asmevo.gates.interval import speedup_interval
from asmevo.gates.latency import SettingError, geometric_mean
from asmevo.gates.verdict import Outcome

SETTINGS: dict[str, Any] = {
    "epsilon": 0.002, "k": 0.85, "s_floor": 1.0, "dispatch_floor": 0.98, "repeats": 3,
    "samples": 20, "warmup": 5, "cosine": 0.9999, "max_abs": 1e-3,
}


def timing(*samples: float) -> Timing:
    return Timing("d", samples, TimingSource.MEASURED, "gpu")


def pair(speedup: float, *, spread: float = 0.0) -> tuple[Timing, Timing]:
    new = 100.0 / speedup
    return timing(100.0, 100.0), timing(new * (1 - spread), new, new * (1 + spread))


def test_epsilon_decides_without_noise() -> None:
    gate = CommitGate()
    assert gate.judge(1.0021, [pair(1.0021)], best=1.0).passed
    assert gate.judge(1.0019, [pair(1.0019)], best=1.0).code == "not-better"


def test_noise_raises_the_bar() -> None:
    gate = CommitGate(k=0.85)
    noisy = pair(1.05, spread=0.10)  # c_v of (0.9, 1, 1.1) is 0.1
    verdict = gate.judge(1.05, [noisy], best=1.0)
    assert verdict.code == "not-better"
    assert verdict.evidence["threshold"] == pytest.approx(1.085, rel=1e-3)
    assert CommitGate(k=0.4).judge(1.05, [noisy], best=1.0).passed


def test_the_best_so_far_is_the_yardstick() -> None:
    gate = CommitGate()
    assert gate.judge(1.21, [pair(1.21)], best=1.2).passed
    assert gate.judge(1.201, [pair(1.201)], best=1.2).code == "not-better"


def test_floor() -> None:
    assert CommitGate().judge(1.0, [pair(1.0)], best=0.5).code == "below-floor"
    assert CommitGate(s_floor=1.5).judge(1.4, [pair(1.4)], best=1.0).code == "below-floor"


def test_one_shape_cannot_carry_the_mean() -> None:
    pairs = [pair(3.0), pair(0.9)]
    speedup = geometric_mean([3.0, 0.9])
    assert CommitGate().judge(speedup, pairs, best=1.0).code == "dispatch-slower"


def test_an_interval_that_reaches_the_floor_is_no_speedup() -> None:
    """The median says 1.05x; half of the pairs say that it is slower."""
    old = timing(*[100.0] * 10)
    new = timing(*[94.0] * 4, *[95.2] * 2, *[108.0] * 4)
    speedup = old.median_us / new.median_us
    verdict = CommitGate(k=0.0).judge(speedup, [(old, new)], best=1.0)
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "uncertain")
    low, high = speedup_interval([(old, new)])
    assert low < 1.0 < speedup < high


def test_no_timing_is_missing_and_no_pass() -> None:
    verdict = CommitGate().judge(None, [], best=1.0)
    assert verdict.outcome is Outcome.MISSING
    assert not verdict.passed


@given(
    st.floats(0.5, 4.0), st.floats(1.0, 3.0), st.floats(0.0, 0.1), st.floats(0.0, 2.0),
)
def test_threshold_is_the_specified_one(s: float, best: float, eps: float, k: float) -> None:
    gate = CommitGate(epsilon=eps, k=k, dispatch_floor=0.0)
    pairs = [pair(s, spread=0.02)]
    variation = pairs[0][1].variation
    sure = speedup_interval(pairs)[0] > 1.0
    expected = s >= (1 + max(eps, k * variation)) * best and s > 1.0 and sure
    assert gate.judge(s, pairs, best=best).passed == expected


@pytest.mark.parametrize("name", ["epsilon", "k", "s_floor", "dispatch_floor"])
def test_negative_settings_are_refused(name: str) -> None:
    with pytest.raises(SettingError, match=name):
        from_settings(**{**SETTINGS, name: -0.1})


@pytest.mark.parametrize("change", [{"samples": 0}, {"warmup": -1}, {"repeats": 2}])
def test_settings_that_prove_nothing_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(SettingError):
        from_settings(**{**SETTINGS, **change})
