"""Candidates with their verdicts and timings, to rows and back."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.device.device import Timing, TimingSource
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.blobs.store import StagedBlobs, is_sha256
from asmevo.registry.database.models import CandidateRow, TimingRow, VerdictRow, now
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import CandidateRecord, CandidateStatus
from asmevo.registry.rows.objects import add_object
from asmevo.registry.rows.values import json_object, json_value


def stored_candidate(record: CandidateRecord, blobs: StagedBlobs, assembly: str | None,
                     built: CodeObject | None) -> CandidateRecord:
    """The record of a candidate whose blobs are stored now."""
    if record.status is CandidateStatus.COMMITTED:
        raise RegistryError("a candidate is committed by commit_replacement only")
    return dataclasses.replace(
        record,
        assembly_sha256=None if assembly is None else blobs.put(assembly.encode()),
        object_sha256=None if built is None else blobs.put(built.data),
        created=record.created or now())


def add_candidate(session: Session, record: CandidateRecord, built: CodeObject | None) -> None:
    """Add the rows of a candidate with its object, verdicts and timings; its parent must be stored.
    """
    if built is not None:
        add_object(session, built, f"candidate {record.id}")
    if record.parent_id is not None:
        _check_parent(session, record, record.parent_id)
    session.add(CandidateRow(
        id=record.id, run_id=record.run_id, parent_id=record.parent_id,
        original_sha256=record.original_sha256, kernel=record.kernel,
        object_sha256=record.object_sha256, assembly_sha256=record.assembly_sha256,
        edits=[json_value(dataclasses.asdict(edit)) for edit in record.edits],
        rule=record.rule, direction=str(record.direction), rationale=record.rationale,
        worker=record.worker, status=record.status.value, created=record.created or now()))
    session.flush()
    session.add_all(_verdict_rows(record))
    session.add_all(timing_row(t, record.run_id, candidate_id=record.id) for t in record.timings)


def timing_row(timing: Timing, run_id: str, *, candidate_id: str | None = None,
               original_sha256: str | None = None) -> TimingRow:
    """The row of a timing of a candidate or of the original."""
    if not is_sha256(timing.dispatch):
        raise RegistryError(f"a timing names its dispatch '{timing.dispatch}' instead of giving "
                            "its SHA-256")
    samples = [float(sample) for sample in timing.samples_us]
    if not samples or not all(math.isfinite(s) and s > 0 for s in samples):
        raise RegistryError(f"a timing of dispatch {timing.dispatch} has no samples, or one that "
                            "is not a positive number of microseconds")
    return TimingRow(
        run_id=run_id, candidate_id=candidate_id, original_sha256=original_sha256,
        dispatch_sha256=timing.dispatch, samples=samples, source=timing.source.value,
        device=timing.device, warmup=timing.warmup)


def candidate_records(session: Session,
                      condition: ColumnElement[bool]) -> tuple[CandidateRecord, ...]:
    """The candidates that meet a condition on their rows, oldest first, with their evidence."""
    verdicts: dict[str, list[VerdictRow]] = defaultdict(list)
    for verdict in session.exec(select(VerdictRow).join(CandidateRow).where(condition)
                                .order_by(col(VerdictRow.id))):
        verdicts[verdict.candidate_id].append(verdict)
    timings: dict[str, list[TimingRow]] = defaultdict(list)
    for timing in session.exec(
            select(TimingRow)
            .join(CandidateRow, col(CandidateRow.id) == TimingRow.candidate_id)
            .where(condition).order_by(col(TimingRow.id))):
        timings[str(timing.candidate_id)].append(timing)
    rows = session.exec(select(CandidateRow).where(condition)
                        .order_by(col(CandidateRow.created), col(CandidateRow.id)))
    return tuple(_record(row, verdicts[row.id], timings[row.id]) for row in rows)


def timing_records(session: Session, condition: ColumnElement[bool]) -> tuple[Timing, ...]:
    """The timings that meet a condition, in the order they were recorded."""
    rows = session.exec(select(TimingRow).where(condition).order_by(col(TimingRow.id)))
    try:
        return tuple(_timing(row) for row in rows)
    except (ValueError, TypeError) as error:
        raise RegistryError(f"the record of a timing is malformed: {error}") from error


def _check_parent(session: Session, record: CandidateRecord, parent_id: str) -> None:
    parent = session.get(CandidateRow, parent_id)
    if parent is None:
        raise RegistryError(f"candidate '{record.id}' has an unknown parent '{parent_id}'")
    if (parent.original_sha256, parent.kernel) != (record.original_sha256, record.kernel):
        raise RegistryError(f"candidate '{record.id}' and its parent '{parent_id}' are of "
                            "different kernels")


def _verdict_rows(record: CandidateRecord) -> list[VerdictRow]:
    repeats: Counter[str] = Counter()
    rows = []
    for verdict in record.verdicts:
        repeats[verdict.gate] += 1
        rows.append(VerdictRow(
            candidate_id=record.id, gate=verdict.gate.value, attempt=repeats[verdict.gate],
            outcome=verdict.outcome.value, code=verdict.code, reason=verdict.reason,
            evidence=json_object(verdict.evidence)))
    return rows


def _record(row: CandidateRow, verdicts: Sequence[VerdictRow],
            timings: Sequence[TimingRow]) -> CandidateRecord:
    try:
        return CandidateRecord(
            id=row.id, run_id=row.run_id, parent_id=row.parent_id,
            original_sha256=row.original_sha256, kernel=row.kernel,
            edits=tuple(Edit(**{**edit, "lines": tuple(edit["lines"])}) for edit in row.edits),
            rule=row.rule, direction=row.direction, rationale=row.rationale, worker=row.worker,
            status=CandidateStatus(row.status),
            verdicts=tuple(
                Verdict(Gate(v.gate), Outcome(v.outcome), v.code, v.reason, v.evidence)
                for v in verdicts),
            timings=tuple(_timing(t) for t in timings),
            assembly_sha256=row.assembly_sha256, object_sha256=row.object_sha256,
            created=row.created)
    except (ValueError, TypeError, KeyError) as error:
        raise RegistryError(f"the record of candidate '{row.id}' is malformed: {error}") from error


def _timing(row: TimingRow) -> Timing:
    if row.unit != "us":
        raise ValueError(f"its unit is '{row.unit}', not 'us'")
    return Timing(row.dispatch_sha256, tuple(float(s) for s in row.samples),
                  TimingSource(row.source), row.device, row.warmup)
