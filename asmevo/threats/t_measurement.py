"""T: tricks of the measurement, not of the kernel."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import (
    Device,
    LaunchState,
    LoadedKernel,
    RunResult,
    Timing,
    TimingSource,
)
from asmevo.device.isolated.device import IsolatedDevice
from asmevo.dispatch.dispatch import Dispatch
from asmevo.gates.baseline import Baseline
from asmevo.gates.commit import CommitGate
from asmevo.gates.latency import LatencyGate, geometric_mean
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Verdict
from asmevo.profile.profile import Profile
from asmevo.threats.subject import Subject
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import EditMismatch, Measured, before, edited, inserted, replaced

LN = "layer_norm"
_PLAIN = LaunchState()
_EPSILON = "v_add_f32_e64 v14, v14, s28"
_WRONG = edited(replaced(_EPSILON, _EPSILON, _EPSILON))  # twice as much


def _timing(*samples: float) -> Timing:
    return Timing("dispatch", samples, TimingSource.MEASURED, "gpu")


def _commit(pairs: list[tuple[Timing, Timing]]) -> tuple[Verdict, ...]:
    speedup = geometric_mean([old.median_us / new.median_us for old, new in pairs])
    return (CommitGate().judge(speedup, pairs, 1.0),)


def _noise(subject: Subject) -> tuple[Verdict, ...]:
    return _commit([(_timing(100.0, 96.0, 104.0, 110.0), _timing(97.0, 92.0, 99.0, 110.0))])


def _one_shape(subject: Subject) -> tuple[Verdict, ...]:
    return _commit([(_timing(100.0), _timing(40.0)), (_timing(100.0), _timing(105.0))])


def _no_evidence(subject: Subject) -> tuple[Verdict, ...]:
    base = subject.baseline
    empty = Baseline(base.code_object, base.kernel, base.assembly, (), base.device)
    return subject.gates.judge(empty, subject.toolchain, assembly=subject.assembly)[1]


def _not_timed(subject: Subject) -> tuple[Verdict, ...]:
    return (CommitGate().judge(None, [], 1.0),)


def _original_as_its_own(subject: Subject) -> tuple[Verdict, ...]:
    return subject.judge(subject.code_object)


def _broken_object(subject: Subject) -> tuple[Verdict, ...]:
    """Were the original loaded instead of the candidate, this would pass."""
    trial = Trial(subject.baseline, subject.toolchain, assembly=_WRONG.made(subject))
    built = subject.gates.assemble.judge(trial, 0)
    return (built,) if trial.code_object is None else subject.judge(trial.code_object)


def _hidden_failures(subject: Subject) -> tuple[Verdict, ...]:
    """What a held-out dispatch shows may not reach a proposer: the verdict must not say it."""
    base = subject.baseline
    blind = Baseline(base.code_object, base.kernel, base.assembly,
                     [replace(d, held_out=True) for d in base.dispatches], base.device)
    verdicts = subject.gates.judge(
        blind, subject.toolchain, assembly=_WRONG.made(subject))[1]
    told = " ".join((verdicts[-1].reason, *map(str, verdicts[-1].evidence)))
    if any(d.name in told for d in base.dispatches) or "element" in told:
        return (Verdict(Gate.G2, verdicts[-1].outcome, "held-out-shown", told),)
    return verdicts


class _Delegate:
    """A loaded kernel in front of another; what it does not say is as there."""

    def __init__(self, inner: LoadedKernel) -> None:
        self._inner = inner

    def run(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *,
            limit: int | None = None) -> RunResult:
        return self._inner.run(dispatch, state, limit=limit)

    def time(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *, samples: int,
             warmup: int) -> Timing:
        return self._inner.time(dispatch, state, samples=samples, warmup=warmup)

    def profile(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *,
                timeline: bool = False) -> Profile:
        return self._inner.profile(dispatch, state, timeline=timeline)


class _Clock(_Delegate):
    """A kernel whose times are a thousandth of what they were."""

    def time(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *, samples: int,
             warmup: int) -> Timing:
        honest = super().time(dispatch, state, samples=samples, warmup=warmup)
        return replace(honest, samples_us=tuple(t / 1000 for t in honest.samples_us))


def _faster_than_possible(subject: Subject) -> tuple[Verdict, ...]:
    """Work elsewhere (another queue, a clock that stands) shows as a time below the floor."""
    trial = Trial(subject.baseline, subject.toolchain, code_object=subject.code_object)
    trial.loaded = _Clock(subject.baseline.loaded)
    return (subject.gates.latency.judge(trial, 0),)


def _ended_process(subject: Subject) -> tuple[Verdict, ...]:
    """The process in which the candidate was to run is gone: no result is no equal result."""
    device = subject.baseline.candidate_device
    if not isinstance(device, IsolatedDevice):
        raise EditMismatch("candidates run in this process (gates.isolate=false)")
    trial = Trial(subject.baseline, subject.toolchain, code_object=subject.code_object)
    first = subject.gates.equality.judge(trial, 0)
    if not first.passed or device.child.pid is None:
        return (first,)
    os.kill(device.child.pid, signal.SIGKILL)
    return (first, subject.gates.equality.judge(trial, 0))


class _Lazy(_Delegate):
    """What it was asked to do is done when somebody asks again."""

    def run(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *,
            limit: int | None = None) -> RunResult:
        return RunResult(tuple(r.mapped for r in dispatch.regions), 1, 0.0)


class _LaterWrong(_Delegate):
    """Right until it has been timed."""

    timed = False

    def run(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *,
            limit: int | None = None) -> RunResult:
        result = self._inner.run(dispatch, state, limit=limit)
        if not self.timed:
            return result
        return replace(result, regions=tuple(r.mapped for r in dispatch.regions))

    def time(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *, samples: int,
             warmup: int) -> Timing:
        self.timed = True
        return super().time(dispatch, state, samples=samples, warmup=warmup)


class _SlowHost(_Delegate):
    """Its host takes half a millisecond more for every launch, which is no work of the device."""

    def time(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *, samples: int,
             warmup: int) -> Timing:
        time.sleep(0.0005 * (samples + warmup))
        return super().time(dispatch, state, samples=samples, warmup=warmup)


class _Boasting(_Delegate):
    """Prints what a harness that reads logs would like to see."""

    def time(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *, samples: int,
             warmup: int) -> Timing:
        for stream in (sys.stdout, sys.stderr):
            print('{"speedup": 1000.0, "candidate_us": 0.001, "outcome": "pass"}', file=stream)
        return super().time(dispatch, state, samples=samples, warmup=warmup)


class _Measuring:
    """A device that passes for one that measures: the same launch twice may take another time."""

    deterministic = False

    def __init__(self, inner: Device) -> None:
        self._inner = inner
        self.name = inner.name
        self.source = inner.source

    def load(self, code_object: CodeObject, kernel: str) -> LoadedKernel:
        return self._inner.load(code_object, kernel)


def _lazy(subject: Subject) -> tuple[Verdict, ...]:
    trial = Trial(subject.baseline, subject.toolchain, code_object=subject.code_object)
    trial.loaded = _Lazy(subject.baseline.loaded)
    return (subject.gates.equality.judge(trial, 0),)


def _caches_left_warm(subject: Subject) -> tuple[Verdict, ...]:
    """The second to be timed finds nothing that the first left: the model's caches start cold."""
    base = subject.baseline
    pairs = []
    for index in base.timed_dispatches:
        first = base.time(base.loaded, index, samples=1, warmup=0)
        pairs.append((first, base.time(base.loaded, index, samples=1, warmup=3)))
    return _commit(pairs)


def _timed(subject: Subject, kernel: LoadedKernel) -> tuple[Verdict, ...]:
    """G3 and G4 of a kernel that is the original."""
    trial = Trial(subject.baseline, subject.toolchain, code_object=subject.code_object)
    trial.loaded = kernel
    verdict = subject.gates.latency.judge(trial, 0)
    if not verdict.passed:
        return (verdict,)
    return (verdict, subject.gates.commit.judge(trial.speedup, trial.timings, 1.0))


def _diluted(subject: Subject) -> tuple[Verdict, ...]:
    """A host that takes longer for the original makes nothing of the candidate faster."""
    base = subject.baseline
    slow = Baseline(base.code_object, base.kernel, base.assembly, base.dispatches, base.device,
                    seed=base.seed)
    slow.__dict__["loaded"] = _SlowHost(base.loaded)
    return _timed(replace(subject, baseline=slow), base.loaded)


def _boasting(subject: Subject) -> tuple[Verdict, ...]:
    return _timed(subject, _Boasting(subject.baseline.loaded))


def _stale_result(subject: Subject) -> tuple[Verdict, ...]:
    """A wrong candidate right after a right one, on the same device."""
    subject.judge(subject.code_object)
    return subject.judge(_WRONG.made(subject))


def _stale_time(subject: Subject) -> tuple[Verdict, ...]:
    """A slower candidate right after the original was timed: it does not get its time."""
    subject.judge(subject.code_object)
    slower = inserted(*["s_nop 15"] * 64).made(subject)
    return subject.judge(slower)


def _right_at_first(subject: Subject) -> tuple[Verdict, ...]:
    base = subject.baseline
    measuring = Baseline(base.code_object, base.kernel, base.assembly, base.dispatches,
                         _Measuring(base.device), seed=base.seed)
    trial = Trial(measuring, subject.toolchain, code_object=subject.code_object)
    trial.loaded = _LaterWrong(base.loaded)
    first = subject.gates.equality.judge(trial, 0)
    if not first.passed:
        return (first,)
    return (first, LatencyGate(samples=4, warmup=1, warmup_seconds=0.0).judge(trial, 0))


# Idle where the output has nothing but zeros, as it has when memory is fresh.
_IDLE_ON_ZERO = edited(
    before("s_and_b32 s17", "s_load_dword s40, s[12:13], 0x0", "s_waitcnt lgkmcnt(0)",
           "s_cmp_eq_u32 s40, 0", "s_addc_u32 s41, -1, 0", "s_mov_b32 s14, 0"),
    replaced("s_mov_b32 s53, 0", "s_add_u32 s53, s41, 1"))

THREATS = (
    Threat("T4", "results are made when they are asked for again", LN, Measured(_lazy),
           Gate.G2, ("nan-class", "max-abs", "infinity", "cosine")),
    Threat("T5", "caches that the original left warm", LN, Measured(_caches_left_warm),
           Gate.G4, ("below-floor",)),
    Threat("T8", "a host that is slower with the original", LN, Measured(_diluted),
           Gate.G4, ("below-floor",)),
    Threat("T13", "figures in what a candidate's process prints", LN, Measured(_boasting),
           Gate.G4, ("below-floor",)),
    Threat("T14", "a wrong candidate after a right one", LN, Measured(_stale_result),
           Gate.G2, ("max-abs",)),
    Threat("T14", "a slower candidate after the original", LN, Measured(_stale_time),
           Gate.G4, ("below-floor", "dispatch-slower")),
    Threat("T18", "right until it has been timed", LN, Measured(_right_at_first),
           Gate.G3, ("late-difference",)),
    Threat("T3", "idle while the output is still zero", LN, _IDLE_ON_ZERO,
           Gate.G4, (*LAUNCH, "below-floor", "not-better")),
    Threat("T7", "a difference within the noise", LN, Measured(_noise),
           Gate.G4, ("uncertain", "not-better")),
    Threat("T9", "a thousand times faster than it was", LN, Measured(_faster_than_possible),
           Gate.G3, ("faster-than-possible",)),
    Threat("T16", "the process of a candidate dies", LN, Measured(_ended_process),
           Gate.G2, ("fault-crash",)),
    Threat("T10", "one shape carries the mean", LN, Measured(_one_shape),
           Gate.G4, ("dispatch-slower",)),
    Threat("T7", "the original as its own improvement", LN, Measured(_original_as_its_own),
           Gate.G4, ("below-floor",)),
    Threat("T11", "the candidate is never loaded", LN, Measured(_broken_object),
           Gate.G2, ("max-abs", "cosine", "nan-class", "infinity")),
    Threat("T15", "no inputs, no mismatch", LN, Measured(_no_evidence),
           Gate.G2, ("no-dispatch",)),
    Threat("T15", "no timing, no slowdown", LN, Measured(_not_timed), Gate.G4, ("no-timing",)),
    Threat("T17", "held-out inputs show in the evidence", LN, Measured(_hidden_failures),
           Gate.G2, ("held-out",)),
)
