"""Candidates in a process of their own: the same verdicts, and its death is one."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.device.device import CheckedKernel, DeviceFault, LaunchState, RunResult
from asmevo.device.isolated.device import IsolatedDevice, IsolatedKernel
from asmevo.dispatch.dispatch import Dispatch
from asmevo.gates.baseline import Baseline
from asmevo.gates.equality import EqualityGate
from asmevo.gates.harness import from_settings
from asmevo.gates.latency import SettingError
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Outcome, Verdict
from asmevo.task.session import Session


def candidate(session: Session, baseline: Baseline, *, wrong: bool) -> tuple[Verdict, ...]:
    lines = [line.text for line in session.assembly.body(session.symbol).lines if line.text]
    at = lines.index("v_add_f32_e64 v14, v14, s28" if wrong else "s_mov_b32 s2, s2")
    edit = Edit(session.symbol, at, at + 1, (), "test")
    gates = replace(session.gates, commit=replace(session.gates.commit, s_floor=0.5))
    return gates.judge(baseline, session.toolchain, assembly=session.assembly.apply([edit]))[1]


def inline(session: Session) -> Baseline:
    """The same oracle with candidates in this process."""
    return Baseline(
        session.code_object, session.symbol, session.assembly, session.baseline.dispatches,
        session.device, seed=session.baseline.seed, operation=session.kernel.operation)


def device(session: Session) -> IsolatedDevice:
    found = session.baseline.candidate_device
    assert isinstance(found, IsolatedDevice)
    return found


@pytest.mark.parametrize("wrong", [False, True])
def test_verdicts_do_not_depend_on_the_process(session: Session, wrong: bool) -> None:
    isolated = candidate(session, session.baseline, wrong=wrong)
    assert isolated == candidate(session, inline(session), wrong=wrong)
    assert isolated[-1].passed is not wrong


def test_one_process_serves_many_candidates(session: Session) -> None:
    candidate(session, session.baseline, wrong=True)
    pid = device(session).child.pid
    assert pid not in (None, os.getpid())
    candidate(session, session.baseline, wrong=False)
    assert device(session).child.pid == pid


def test_a_dying_process_is_a_failure_and_the_next_candidate_passes(session: Session) -> None:
    trial = Trial(session.baseline, session.toolchain, code_object=session.code_object)
    assert EqualityGate().judge(trial, 0).passed
    assert isinstance(trial.loaded, IsolatedKernel)
    pid = device(session).child.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    verdict = EqualityGate().judge(trial, 0)
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "fault-crash")
    assert EqualityGate().judge(trial, 0).passed


def test_a_crash_on_held_out_inputs_tells_nothing(session: Session) -> None:
    """Neither does what only they need: time or memory."""
    class Dies:
        def run(self, dispatch: Dispatch, state: LaunchState, *,
                limit: int | None = None) -> RunResult:
            if dispatch.name in hidden:
                raise DeviceFault("ended by SIGSEGV", kind="crash")
            return session.baseline.loaded.run(dispatch, state, limit=limit)

    hidden = {d.name for d in session.baseline.dispatches if d.held_out}
    assert hidden
    trial = Trial(session.baseline, session.toolchain, code_object=session.code_object)
    trial.loaded = Dies()  # type: ignore[assignment]
    verdict = EqualityGate().judge(trial, 0)
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "held-out")
    assert "SIGSEGV" not in verdict.reason


def test_the_sanitizer_runs_there_as_well(session: Session) -> None:
    kernel = device(session).load(session.code_object, session.symbol)
    assert isinstance(kernel, CheckedKernel)
    dispatch = session.baseline.prepared(0, 0)
    here = session.baseline.loaded
    assert isinstance(here, CheckedKernel)
    there = kernel.sanitize(dispatch, LaunchState(poison=5))
    found = here.sanitize(dispatch, LaunchState(poison=5))
    assert there.errors_by_class == found.errors_by_class
    assert list(there.summary()) == list(found.summary())


@pytest.mark.parametrize("change", [{"candidate_seconds": 0.0}, {"candidate_memory_mib": 16},
                                    {"candidate_seconds": float("nan")}])
def test_limits_must_let_something_run(change: dict[str, float]) -> None:
    settings = {"epsilon": 0.002, "k": 0.85, "s_floor": 1.0, "dispatch_floor": 0.98, "repeats": 3,
                "samples": 20, "warmup": 5, "cosine": 0.9999, "max_abs": 1e-3}
    with pytest.raises(SettingError, match="candidate"):
        from_settings(**{**settings, **change})  # type: ignore[arg-type]


def test_a_winner_is_measured_again_on_every_xcd(session: Session) -> None:
    """A search times parts of large launches; its winner must not be slow in the rest."""
    again = session.remeasuring_device()
    try:
        assert again.name != session.device.name
        kernel = again.load(session.code_object, session.symbol)
        (dispatch, *_) = session.baseline.dispatches
        assert kernel.time(dispatch, LaunchState(), samples=1, warmup=0).median_us > 0
    finally:
        again.close()
