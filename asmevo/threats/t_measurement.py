"""T: tricks of the measurement, not of the kernel."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

from asmevo.device.device import LaunchState, LoadedKernel, RunResult, Timing, TimingSource
from asmevo.device.isolated.device import IsolatedDevice
from asmevo.dispatch.dispatch import Dispatch
from asmevo.gates.baseline import Baseline
from asmevo.gates.commit import CommitGate
from asmevo.gates.latency import geometric_mean
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Verdict
from asmevo.profile.profile import Profile
from asmevo.threats.subject import Subject
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import EditMismatch, Measured, before, edited, replaced

LN = "layer_norm"
_PLAIN = LaunchState()
_WRONG = edited(replaced("v_add_f32_e64 v14, v14, s28"))  # without epsilon


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


class _Clock:
    """A kernel whose times are a thousandth of what they were."""

    def __init__(self, inner: LoadedKernel) -> None:
        self._inner = inner

    def run(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *,
            limit: int | None = None) -> RunResult:
        return self._inner.run(dispatch, state, limit=limit)

    def time(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *, samples: int,
             warmup: int) -> Timing:
        honest = self._inner.time(dispatch, state, samples=samples, warmup=warmup)
        return replace(honest, samples_us=tuple(t / 1000 for t in honest.samples_us))

    def profile(self, dispatch: Dispatch, state: LaunchState = _PLAIN, *,
                timeline: bool = False) -> Profile:
        return self._inner.profile(dispatch, state, timeline=timeline)


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


# Idle where the output has nothing but zeros, as it has when memory is fresh.
_IDLE_ON_ZERO = edited(
    before("s_and_b32 s17", "s_load_dword s40, s[12:13], 0x0", "s_waitcnt lgkmcnt(0)",
           "s_cmp_eq_u32 s40, 0", "s_addc_u32 s41, -1, 0", "s_mov_b32 s14, 0"),
    replaced("s_mov_b32 s53, 0", "s_add_u32 s53, s41, 1"))

THREATS = (
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
