"""An independent second look at a stored replacement."""

from __future__ import annotations

import time
from dataclasses import dataclass

from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.report.result import Result, Status
from asmevo.task.candidate import stored_replacement
from asmevo.task.counterexamples import used
from asmevo.task.session import ConfigError, Session


@dataclass(frozen=True)
class Verify:
    """Loads a replacement by its hash and runs G0 to G3 on it against the original."""

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        if session.config.candidate is None:
            raise ConfigError("task=verify needs candidate=<sha256 of a stored replacement>")
        original = session.code_object
        candidate = stored_replacement(session)
        baseline = session.baseline
        baseline.self_check(session.gates.tolerance)
        trial, verdicts = session.gates.judge(
            baseline, session.toolchain, code_object=candidate
        )
        passed = verdicts[-1].gate is Gate.G3 and all(v.passed for v in verdicts)
        failed = next((v for v in verdicts if not v.passed), None)
        return Result(
            task="verify",
            status=Status.VERIFIED if passed else Status.REJECTED,
            error=None if failed is None else f"{failed.gate.value} {failed.code}: {failed.reason}",
            kernel=session.kernel.name,
            symbol=session.symbol,
            original_sha256=original.sha256,
            replacement_sha256=candidate.sha256,
            speedup=trial.speedup,
            timing_source=session.device.source.value,
            device=session.device.name,
            attempts=1,
            verdicts=_counts(verdicts),
            counterexamples={"used": used(baseline.dispatches)},
            registry=str(session.registry.path),
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
        )


def _counts(verdicts: tuple[Verdict, ...]) -> dict[str, dict[str, int]]:
    """Verdicts by gate; here G2 counts each of its repeats."""
    return {
        gate.value: {
            outcome.value: sum(v.gate is gate and v.outcome is outcome for v in verdicts)
            for outcome in Outcome
        }
        for gate in Gate
    }
