"""The main job: from a compiled binary to a verified faster one."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict, dataclass

from omegaconf import OmegaConf

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import TimingSource
from asmevo.device.isolated.child import IsolationError
from asmevo.durable import write_atomically
from asmevo.gates.remeasure import measured_again
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.records import RunStatus
from asmevo.report.result import Result, Status
from asmevo.report.terminal import Progress
from asmevo.search.attempt import Attempt
from asmevo.search.controller import Controller, Tally
from asmevo.search.interrupt import uninterrupted
from asmevo.search.lineage import Lineage, Node
from asmevo.task.counterexamples import used
from asmevo.task.recorder import Recorder
from asmevo.task.session import Session

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Observers:
    """Tells several observers in turn."""

    members: tuple[Recorder, Progress]

    def attempted(self, attempt: Attempt, verdicts: tuple[Verdict, ...], node: Node | None) -> None:
        for member in self.members:
            member.attempted(attempt, verdicts, node)


@dataclass(frozen=True)
class Optimize:
    """Recover, check the original against itself, search, and store everything."""

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        registry = session.registry
        registry.check_writable()
        search, device = session.search, session.device
        original = session.code_object
        report = session.round_trip
        baseline = session.baseline
        check_started = time.monotonic()
        instructions = baseline.self_check(session.gates.tolerance)
        rate = instructions / max(time.monotonic() - check_started, 1e-9)
        write_atomically(session.folder / "original.s", session.assembly.text().encode())

        toolchain = dict(report.versions)
        registry.record_original(original, session.kernel.source.describe())
        registry.record_recovered(
            original.sha256, session.assembly.text(),
            {"identical": report.identical, "masks": list(report.masks),
             "instructions": report.instruction_count, "fallbacks": report.fallback_count},
            toolchain,
        )
        registry.record_dispatches(baseline.dispatches)
        run_id = registry.start_run(
            task="optimize", config=OmegaConf.to_yaml(session.config, resolve=True),
            seed=search.seed, toolchain=toolchain, device=device.name,
            device_source=device.source.value,
        )
        lineage = Lineage(session.workbench.root())
        recorder = Recorder(registry, run_id, baseline, session.folder)
        progress = Progress(session.kernel.name, device.source.value)
        executor = search.start_executor(session.workbench, session.workbench_factory())
        controller = Controller(
            lineage, session.gates.commit, search.planner, executor, search.budget,
            _Observers((recorder, progress)),
        )
        status = RunStatus.FAILED
        stopped = "interrupted"
        try:
            with progress.shown():
                stopped = controller.run()
            status = RunStatus.COMPLETED
        except KeyboardInterrupt:
            status = RunStatus.INTERRUPTED
        finally:
            with uninterrupted():
                executor.close()
                recorder.close()
                registry.finish_run(run_id, status)
                _write_lineage(session, lineage)
        best = lineage.best
        again, verdict = _measured_again(session, best)
        # No second look, or one that finds it no faster, is no winner: missing never passes.
        confirmed = again is not None and again > session.gates.commit.s_floor
        if best.number:
            recorder.timed_again(best, again, verdict, confirmed=confirmed)
        outcome = Status.COMMITTED if confirmed else Status.NONE
        if best.number and not confirmed:
            log.warning("the replacement %s was not faster when it was timed again%s; see "
                        "measured_again.json in the run folder", best.sha256,
                        "" if again is None else f" ({again:.4f}x)")
        return Result(
            task="optimize",
            status=Status.INTERRUPTED if status is RunStatus.INTERRUPTED else outcome,
            kernel=session.kernel.name,
            symbol=session.symbol,
            original_sha256=original.sha256,
            replacement_sha256=best.sha256 if best.number else None,
            speedup=best.speedup,
            speedup_again=again,
            timing_source=device.source.value,
            device=device.name,
            attempts=controller.tally.attempts,
            duplicates=controller.tally.duplicates,
            commits=controller.tally.commits,
            verdicts=_verdict_counts(controller.tally),
            rules=_rule_counts(controller.tally),
            counterexamples={
                "used": used(baseline.dispatches), "kept": recorder.counterexamples.kept,
                "refused": recorder.counterexamples.refused},
            stopped=stopped,
            run_id=run_id,
            registry=str(registry.path),
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            wave_instructions_per_second=(
                rate if device.source is TimingSource.MODELLED else None
            ),
        )


def _measured_again(session: Session, best: Node) -> tuple[float | None, Verdict]:
    """The winner's speedup in a fresh process; ``None`` when there is no winner or no speedup."""
    if not best.number:
        return None, Verdict(Gate.G3, Outcome.MISSING, "no-winner", "nothing was committed")
    fresh = session.remeasuring_device()
    try:
        speedup, verdict = measured_again(
            session.baseline, CodeObject.parse(best.code), fresh, session.toolchain,
            session.gates.latency)
    except IsolationError as error:
        log.warning("the winner was not measured again: %s", error)
        return None, Verdict(Gate.G3, Outcome.MISSING, "not-timed", str(error))
    finally:
        fresh.close()
    write_atomically(session.folder / "measured_again.json", (json.dumps(
        {"sha256": best.sha256, "speedup": speedup, "committed": best.speedup,
         "outcome": verdict.outcome.value, "code": verdict.code, "reason": verdict.reason,
         "evidence": dict(verdict.evidence)}, indent=2) + "\n").encode())
    return speedup, verdict


def _verdict_counts(tally: Tally) -> dict[str, dict[str, int]]:
    return {
        gate.value: {outcome.value: tally.verdicts[gate][outcome] for outcome in Outcome}
        for gate in Gate
    }


def _rule_counts(tally: Tally) -> dict[str, dict[str, int]]:
    return {
        rule: {"proposed": count, "accepted": tally.accepted[rule]}
        for rule, count in sorted(tally.proposed.items())
    }


def _write_lineage(session: Session, lineage: Lineage) -> None:
    nodes = [
        {
            "number": node.number, "parent": node.parent, "sha256": node.sha256,
            "speedup": node.speedup, "rule": node.rule,
            "direction": node.direction.value if node.direction else None,
            "rationale": node.rationale, "assumption": node.assumption,
            "resources": asdict(node.resources),
            "edits": [asdict(edit) for edit in node.edits],
        }
        for node in lineage
    ]
    folder = session.folder
    write_atomically(folder / "lineage.json", (json.dumps(nodes, indent=2) + "\n").encode())
    if lineage.best.number:
        write_atomically(folder / "replacement.co", lineage.best.code)
        write_atomically(folder / "replacement.s", lineage.best.assembly.text().encode())
