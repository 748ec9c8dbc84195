"""Kernels that behave when they are verified and are idle when they are timed (T18, B5)."""

from __future__ import annotations

from asmevo.device.device import LaunchState, LoadedKernel, RunResult, Timing
from asmevo.device.emulator.emulator import Emulator
from asmevo.dispatch.dispatch import Dispatch
from asmevo.gates.equality import EqualityGate
from asmevo.gates.trial import Trial
from asmevo.profile.profile import Profile
from asmevo.task.session import Session

PLAIN = LaunchState()


class Spy:
    """Stands before a loaded kernel and keeps what it was asked to run and to time."""

    def __init__(self, inner: LoadedKernel) -> None:
        self._inner = inner
        self.ran: list[tuple[Dispatch, LaunchState]] = []
        self.timed: list[tuple[Dispatch, LaunchState]] = []

    def run(
        self, dispatch: Dispatch, state: LaunchState = PLAIN, *, limit: int | None = None
    ) -> RunResult:
        self.ran.append((dispatch, state))
        return self._inner.run(dispatch, state, limit=limit)

    def time(
        self, dispatch: Dispatch, state: LaunchState = PLAIN, *, samples: int, warmup: int
    ) -> Timing:
        self.timed.append((dispatch, state))
        return self._inner.time(dispatch, state, samples=samples, warmup=warmup)

    def profile(
        self, dispatch: Dispatch, state: LaunchState = PLAIN, *, timeline: bool = False
    ) -> Profile:
        raise AssertionError("gates do not profile")


def test_a_candidate_is_timed_on_a_launch_on_which_it_was_verified(layer_norm: Session) -> None:
    """Equal to the last byte: output contents, guards, addresses, undefined state."""
    baseline = layer_norm.baseline
    trial = Trial(baseline, layer_norm.toolchain, code_object=layer_norm.code_object)
    spy = Spy(baseline.loaded)
    trial.loaded = spy
    assert EqualityGate().judge(trial, 0).passed
    assert layer_norm.gates.latency.judge(trial, 0).passed
    assert len(spy.timed) == len(baseline.timed_dispatches)
    for launch in spy.timed:
        assert launch in spy.ran


def test_all_workgroups_of_the_timed_launches_are_simulated(layer_norm: Session) -> None:
    """No XCD of a small launch is left on which a candidate may be slow."""
    device = layer_norm.device
    assert isinstance(device, Emulator)
    for index in layer_norm.baseline.timed_dispatches:
        x, y, z = grid = layer_norm.baseline.dispatches[index].grid
        samples = device.timing.samples(grid, seed=0)
        assert sorted(w for s in samples for w in s.workgroups) == list(range(x * y * z))
