"""The events of a search that a registry holds, or as far as its candidates tell them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from asmevo.errors import AsmEvoError
from asmevo.gates.verdict import Gate
from asmevo.registry.records import CandidateRecord, CandidateStatus, ReplacementRecord, RunRecord
from asmevo.registry.registry import Registry
from asmevo.search.events import (
    AnyEvent,
    Attempted,
    Committed,
    Ended,
    Started,
    VerdictFact,
    from_json,
)


def stored_events(registry: Registry, run: RunRecord,
                  candidates: Sequence[CandidateRecord] | None = None) -> tuple[AnyEvent, ...]:
    """The events that a registry holds of a run, or what its candidates tell (`from_registry`)."""
    if stored := registry.search_events(run.id):
        return tuple(from_json(data) for data in stored)
    try:
        config = registry.load_text(run.config_sha256)
    except AsmEvoError:
        config = ""
    return tuple(from_registry(
        run, config, registry.lineage(run.id) if candidates is None else candidates,
        registry.replacements(run_id=run.id)))


def from_registry(
    run: RunRecord, config: str, candidates: Sequence[CandidateRecord],
    replacements: Sequence[ReplacementRecord],
) -> Iterator[AnyEvent]:
    """What the candidates of a run tell: assignments, repeats and faults are not known."""
    if not candidates:
        return
    first = candidates[0]
    budget = budget_of(config)
    yield Started(
        run_id=run.id, kernel=first.kernel, original_sha256=first.original_sha256,
        device=run.device, timing_source=run.device_source, seed=run.seed,
        workers=len({c.worker for c in candidates}), attempts=int(budget.get("attempts") or 0),
        budget_seconds=float(budget.get("seconds") or 0.0))
    speedups = {r.candidate_id: r.speedup for r in replacements}
    nodes: dict[str | None, int] = {None: 0}
    best, best_node, commits = 1.0, 0, 0
    for attempt, candidate in enumerate(candidates, start=1):
        base = nodes.get(candidate.parent_id, 0)
        speedup = speedups.get(candidate.id, _timed_speedup(candidate))
        committed = candidate.status is CandidateStatus.COMMITTED and candidate.object_sha256
        windows = tuple((edit.start, edit.stop) for edit in candidate.edits)
        seconds = 0.0 if candidate.created is None else max(
            (candidate.created - run.started).total_seconds(), 0.0)
        yield Attempted(
            number=attempt, seconds=seconds, attempt=attempt, assignment=0,
            worker=candidate.worker, base=base, candidate=candidate.id, proposer="",
            rule=candidate.rule, direction=candidate.direction, rationale=candidate.rationale,
            assumption="", fingerprint="", edits=len(candidate.edits), windows=windows,
            verdicts=tuple(VerdictFact(v.gate, v.outcome, v.code, v.reason)
                           for v in candidate.verdicts),
            speedup=speedup, sha256=candidate.object_sha256,
            node=commits + 1 if committed else None)
        if not committed or speedup is None:
            continue
        commits += 1
        nodes[candidate.id] = commits
        yield Committed(
            seconds=seconds, node=commits, parent=base, candidate=candidate.id,
            sha256=str(candidate.object_sha256), speedup=speedup, before=best,
            worker=candidate.worker, proposer="", rule=candidate.rule,
            direction=candidate.direction, rationale=candidate.rationale, windows=windows)
        if speedup > best:
            best, best_node = speedup, commits
    if run.finished is not None:
        yield Ended(seconds=(run.finished - run.started).total_seconds(), why=run.status.value,
                    attempts=len(candidates), duplicates=0, faults=0, commits=commits,
                    best=best_node, speedup=best)


def _timed_speedup(candidate: CandidateRecord) -> float | None:
    """The speedup of a candidate that was timed and not committed, as its verdict has it."""
    for verdict in candidate.verdicts:
        speedup = verdict.evidence.get("speedup")
        if verdict.gate == Gate.G3 and verdict.passed and isinstance(speedup, int | float):
            return float(speedup)
    return None


def budget_of(config: str) -> Any:
    """The ``search.budget`` of a configuration's text; empty where it has none."""
    try:
        budget = OmegaConf.select(OmegaConf.create(config), "search.budget")
    except (OmegaConfBaseException, YAMLError):
        return {}
    return budget if isinstance(budget, Mapping | DictConfig) else {}
