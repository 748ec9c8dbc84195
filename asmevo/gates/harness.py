"""Runs the gates in order and stops at the first that does not pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.toolchain import Toolchain
from asmevo.device.isolated.child import Limits
from asmevo.dispatch.comparison import Tolerance
from asmevo.gates.assemble import AssembleGate, Method
from asmevo.gates.baseline import Baseline
from asmevo.gates.commit import CommitGate
from asmevo.gates.equality import EqualityGate
from asmevo.gates.latency import LatencyGate, SettingError
from asmevo.gates.precision import Precision
from asmevo.gates.reach import ReachGate
from asmevo.gates.static import StaticGate
from asmevo.gates.trial import CandidateGate, Trial
from asmevo.gates.verdict import Verdict

_MOST_REPEATS = 100
_LEAST_MIB = 256


@dataclass(frozen=True)
class Gates:
    """The five gates. Everything up to G3 needs only the candidate; G4 also the best so far.

    ``isolation`` are the limits of the process in which candidates run; ``None`` runs them in this
    one. Raises `SettingError` when G2 would be verified fewer than three times: evidence with fewer
    repeats is not accepted anywhere.
    """

    assemble: CandidateGate = field(default_factory=AssembleGate)
    static: CandidateGate = field(default_factory=StaticGate)
    equality: CandidateGate = field(default_factory=EqualityGate)
    latency: CandidateGate = field(default_factory=LatencyGate)
    commit: CommitGate = field(default_factory=CommitGate)
    tolerance: Tolerance = field(default_factory=Tolerance)
    sanitize: bool = True
    isolation: Limits | None = None
    reach: CandidateGate = field(default_factory=ReachGate)

    def __post_init__(self) -> None:
        if not 3 <= self.equality.repeats <= _MOST_REPEATS:
            raise SettingError(
                f"gates.repeats must be from 3 to {_MOST_REPEATS}, not {self.equality.repeats}"
            )

    def judge(
        self, baseline: Baseline, toolchain: Toolchain, *,
        assembly: Assembly | None = None, code_object: CodeObject | None = None,
        worth: float = 0.0,
    ) -> tuple[Trial, tuple[Verdict, ...]]:
        """Send a candidate through G0 to G3; give either its assembly or the built object.

        A speedup below ``worth`` cannot be committed.
        """
        trial = Trial(baseline, toolchain, assembly=assembly, code_object=code_object)
        verdicts: list[Verdict] = []
        for gate in (self.assemble, self.static, self.equality, self.reach, self.latency):
            for repeat in range(gate.repeats):
                verdict = gate.judge(trial, repeat)
                # One verdict for each repeat of G2's equality; a block that is reached adds none.
                if gate is not self.reach or not verdict.passed:
                    verdicts.append(verdict)
                if not verdict.passed:
                    return trial, tuple(verdicts)
        if (trial.speedup is not None and trial.speedup > self.commit.s_floor
                and trial.speedup >= worth):
            checked = self._check(trial)
            if checked is not None:
                last = len(verdicts) if not checked.passed else len(verdicts) - 1
                verdicts.insert(last, checked)
        return trial, tuple(verdicts)

    def _check(self, trial: Trial) -> Verdict | None:
        """G2's look at what equality hides, of candidates that may be committed only: it takes
        several times as long as a launch."""
        if not self.sanitize or not isinstance(self.equality, EqualityGate):
            return None
        return self.equality.check(trial)


def from_settings(
    *,
    epsilon: float,
    k: float,
    s_floor: float,
    dispatch_floor: float,
    repeats: int,
    samples: int,
    warmup: int,
    cosine: float,
    max_abs: float,
    warmup_seconds: float = 0.5,
    precision_slack: float = 0.05,
    sanitize: bool = True,
    isolate: bool = True,
    candidate_seconds: float = 60.0,
    candidate_memory_mib: int = 8192,
    rebuild: str = "auto",
    extra_ops: Sequence[str] = (),
    assemble: CandidateGate | None = None,
    static: CandidateGate | None = None,
    equality: CandidateGate | None = None,
    latency: CandidateGate | None = None,
    commit: CommitGate | None = None,
) -> Gates:
    """Build the gates from their thresholds; a gate that is given replaces the built-in one."""
    if rebuild not in tuple(Method):
        raise SettingError(f"gates.rebuild must be {', '.join(Method)}, not {rebuild!r}")
    tolerance = Tolerance(cosine, max_abs)
    if not 0.0 < candidate_seconds < math.inf:
        raise SettingError(f"gates.candidate_seconds must be above 0, not {candidate_seconds}")
    if candidate_memory_mib < _LEAST_MIB:
        raise SettingError(f"gates.candidate_memory_mib must be at least {_LEAST_MIB}, not "
                           f"{candidate_memory_mib}")
    return Gates(
        assemble=assemble or AssembleGate(Method(rebuild)),
        static=static or StaticGate(extra_ops),
        equality=equality or EqualityGate(tolerance, repeats, Precision(precision_slack)),
        latency=latency or LatencyGate(samples, warmup, warmup_seconds, tolerance),
        commit=commit or CommitGate(epsilon, k, s_floor, dispatch_floor),
        tolerance=tolerance,
        sanitize=sanitize,
        isolation=Limits(candidate_seconds, candidate_memory_mib << 20) if isolate else None,
    )
