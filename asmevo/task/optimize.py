"""The main job: from a compiled binary to a verified faster one."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from omegaconf import OmegaConf

from asmevo.codeobject.container import CodeObject
from asmevo.collection import seldom_collected
from asmevo.device.device import TimingSource
from asmevo.device.isolated.child import IsolationError
from asmevo.durable import write_atomically
from asmevo.gates.remeasure import measured_again
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.records import RunStatus
from asmevo.registry.run_lock import RunLock
from asmevo.report.live import SearchDisplay
from asmevo.report.result import Result, Status
from asmevo.report.search_state import Bounds
from asmevo.report.terminal import waiting
from asmevo.search.controller import Controller, fact_of
from asmevo.search.events import Started
from asmevo.search.fingerprint import fingerprint
from asmevo.search.interrupt import uninterrupted
from asmevo.search.lineage import Lineage, Node, exported
from asmevo.search.state import State
from asmevo.search.tally import Record, Tally
from asmevo.task.counterexamples import used
from asmevo.task.judgement import judgement_of
from asmevo.task.recorder import Recorder
from asmevo.task.resume import Past, earlier, identity, rebuild
from asmevo.task.search_report import leave_report
from asmevo.task.session import Session
from asmevo.task.timings import MEASURED_AGAIN, dispatch_timings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Optimize:
    """Recover, check the original against itself, search, and store everything."""

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        registry = session.registry
        registry.check_writable()
        past = earlier(session)
        try:
            return self._search(session, past, started)
        finally:
            if past is not None:
                past.lock.release()

    def _search(self, session: Session, past: Past | None, started: float) -> Result:
        registry = session.registry
        if past is not None:
            session.judge_on(past.started.counterexamples)
        search, device = session.search, session.device
        original = session.code_object
        report = session.round_trip
        baseline = session.baseline
        check_started = time.monotonic()
        with waiting("checking the original against itself"):
            instructions = baseline.self_check(session.gates.tolerance)
        rate = instructions / max(time.monotonic() - check_started, 1e-9)
        judged = judgement_of(session)
        if loosened := tuple(judged.loosened()):
            log.warning("what is committed counts as judged by weaker gates, and asmevo-registry "
                        "pull gives it with --allow-weaker only: %s", "; ".join(loosened))
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
        workbench = session.workbench
        root = workbench.root()
        lineage = Lineage(root)
        state = State(
            lineage, search.budget, seed=search.seed, memory=search.new_memory(),
            supervision=search.new_supervision(),
            root_fingerprint=fingerprint(root.assembly, session.symbol))
        if past is None:
            run_id = registry.start_run(
                task="optimize", config=OmegaConf.to_yaml(session.config, resolve=True),
                seed=search.seed, toolchain=toolchain, device=device.name,
                device_source=device.source.value,
            )
            lock = RunLock(registry.path, run_id)
            lock.demand(run_id)
        else:
            run_id, lock = past.run_id, past.lock
            rebuild(state, past, registry, workbench)
            registry.continue_run(run_id)
        first = Started(
            run_id=run_id, kernel=session.kernel.name, original_sha256=original.sha256,
            device=device.name, timing_source=device.source.value, seed=search.seed,
            workers=search.workers, executor=search.executor, attempts=search.budget.attempts,
            budget_seconds=search.budget.seconds, tokens=search.budget.tokens,
            cost=search.budget.cost, resources=fact_of(root.resources),
            counterexamples=session.counterexamples, identity=identity(session))
        events = () if past is None else past.events
        recorder = Recorder(registry, run_id, baseline, session.folder, events, lineage,
                            judged=judged)
        progress = SearchDisplay(session.kernel.name, device.source.value)
        progress.replay(events, Bounds(search.budget.attempts, search.budget.seconds,
                                       search.budget.tokens, search.budget.cost))
        executor = search.start_executor(workbench, session.workbench_factory())
        controller = Controller(
            state, session.gates.commit, search.planner, executor, recorder, progress, first,
            workers=search.workers, composing=search.composing, patience=search.patience,
            arrival=search.order == "arrival",
            as_built=workbench.as_built,
        )
        status = RunStatus.FAILED
        stopped = "interrupted"
        try:
            with progress.shown(), seldom_collected():
                stopped = controller.run(0.0 if past is None else past.seconds)
            status = RunStatus.COMPLETED
        except KeyboardInterrupt:
            status = RunStatus.INTERRUPTED
        finally:
            with uninterrupted():
                searched = search.budget.elapsed
                executor.close()
                recorder.close()
                registry.finish_run(run_id, status)
                lock.release()
                _write_lineage(session, lineage)
        tally = state.tally
        best = lineage.best
        with waiting("timing the winner again"):
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
        result = Result(
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
            attempts=tally.attempts,
            duplicates=tally.duplicates,
            commits=tally.commits,
            verdicts=_verdict_counts(tally),
            rules=_experience(tally.rules),
            counterexamples={
                "used": used(baseline.dispatches), "kept": recorder.counterexamples.kept,
                "refused": recorder.counterexamples.refused},
            timings=dispatch_timings(registry, run_id, baseline.dispatches,
                                     best.sha256 if best.number else None, session.folder),
            proposers=_experience(tally.proposers),
            faults=tally.faults,
            last_fault=tally.last_fault or None,
            compositions=tally.compositions,
            resumed=past is not None,
            spent={
                "attempts": search.budget.used, "seconds": searched,
                "tokens": search.budget.spent.tokens, "cost": search.budget.spent.cost},
            overhead=_overhead(tally, searched * search.workers),
            stopped=stopped,
            run_id=run_id,
            registry=str(registry.path),
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            wave_instructions_per_second=(
                rate if device.source is TimingSource.MODELLED else None
            ),
        )
        try:
            with waiting("writing the report"):
                page = leave_report(session, result, best.code if best.number else None)
            result.report = None if page is None else str(page)
        except KeyboardInterrupt:
            result.status = Status.INTERRUPTED  # which ends a sweep; what was found is kept
        return result


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
    write_atomically(session.folder / MEASURED_AGAIN, (json.dumps(
        {"sha256": best.sha256, "speedup": speedup, "committed": best.speedup,
         "outcome": verdict.outcome.value, "code": verdict.code, "reason": verdict.reason,
         "evidence": dict(verdict.evidence)}, indent=2) + "\n").encode())
    return speedup, verdict


def _verdict_counts(tally: Tally) -> dict[str, dict[str, int]]:
    return {
        gate.value: {outcome.value: tally.verdicts[gate][outcome] for outcome in Outcome}
        for gate in Gate
    }


def _experience(records: Mapping[str, Record]) -> dict[str, dict[str, float]]:
    return {name: asdict(record) for name, record in sorted(records.items())}


def _overhead(tally: Tally, worker_seconds: float) -> dict[str, float]:
    """Where the time of the workers went."""
    return {
        "worker_seconds": worker_seconds, "gate_seconds": tally.gate_seconds,
        "busy_seconds": tally.busy_seconds, "proposing_seconds": tally.proposing_seconds,
        "share": 1.0 - tally.gate_seconds / max(worker_seconds, 1e-9),
    }


def _write_lineage(session: Session, lineage: Lineage) -> None:
    folder = session.folder
    write_atomically(
        folder / "lineage.json", (json.dumps(exported(lineage), indent=2) + "\n").encode())
    if lineage.best.number:
        write_atomically(folder / "replacement.co", lineage.best.code)
        write_atomically(folder / "replacement.s", lineage.best.assembly.text().encode())
