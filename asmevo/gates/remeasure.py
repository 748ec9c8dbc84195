"""The winner of a search, timed once more where nothing of the search is left."""

from __future__ import annotations

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.toolchain import Toolchain
from asmevo.device.device import Device, DeviceFault, UnsupportedError
from asmevo.gates.baseline import Baseline
from asmevo.gates.latency import LatencyGate
from asmevo.gates.trial import CandidateGate, Trial
from asmevo.gates.verdict import Gate, Outcome, Verdict


def measured_again(
    baseline: Baseline, winner: CodeObject, fresh: Device, toolchain: Toolchain,
    gate: CandidateGate | None = None,
) -> tuple[float | None, Verdict]:
    """Time original and winner on ``fresh``, a device in a process of its own.

    Gives the speedup, ``None`` where the verdict of ``gate`` (G3) is no pass.
    """
    again = Baseline(
        baseline.code_object, baseline.kernel, baseline.assembly, baseline.dispatches, fresh,
        seed=baseline.seed,
    )
    trial = Trial(again, toolchain, code_object=winner)
    try:
        trial.loaded = fresh.load(winner, baseline.kernel)
        verdict = (gate or LatencyGate()).judge(trial, 0)
    except (DeviceFault, UnsupportedError) as error:
        verdict = Verdict(Gate.G3, Outcome.MISSING, "not-timed", str(error))
    return (trial.speedup if verdict.passed else None), verdict
