"""A gate that looks at nothing."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Outcome, Verdict


@dataclass(frozen=True)
class Blind:
    """A gate that passes everything: what is left of a harness without it."""

    gate: Gate
    repeats: int = 1
    loads: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", Gate(self.gate))

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        if self.loads and trial.loaded is None and trial.code_object is not None:
            trial.loaded = trial.baseline.candidate_device.load(
                trial.code_object, trial.baseline.kernel)
        return Verdict(self.gate, Outcome.PASS, "ok", "nothing was looked at")
