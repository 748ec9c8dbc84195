"""Kernels that behave when they are verified and are idle when they are timed (T18, B5)."""

from __future__ import annotations

from collections.abc import Callable

from asmevo.device.device import LaunchState, LoadedKernel, RunResult, Timing
from asmevo.dispatch.dispatch import Dispatch
from asmevo.gates.equality import EqualityGate
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Verdict
from asmevo.profile.profile import Profile
from asmevo.task.session import Session

Judge = Callable[..., tuple[Verdict, ...]]

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


def test_work_moved_off_the_first_workgroup(layer_norm: Session, judge: Judge) -> None:
    """Slow loads in every workgroup but the first cost time although the first looks fast."""
    def slowdown(skip: str) -> float:
        reads = (f"buffer_load_dwordx4 v[244:247], v240, s[16:19], 0 offen offset:{4 * i}"
                 for i in range(30))
        loads = ("v_lshlrev_b32_e32 v240, 9, v0", *reads)
        verdicts = judge(
            layer_norm,
            ("before", "s_waitcnt vmcnt(0) expcnt(0)", (*skip.split("\n"), *loads)),
        )
        speedup = verdicts[-1].evidence.get("speedup")
        return float(speedup) if isinstance(speedup, float) else 0.0

    everywhere = slowdown("s_nop 0")
    # EXEC is empty in workgroup 0 alone.
    elsewhere = slowdown("s_cmp_lg_u32 s2, 0\ns_cselect_b64 exec, -1, 0")
    assert everywhere < 0.9
    assert elsewhere < 0.9
