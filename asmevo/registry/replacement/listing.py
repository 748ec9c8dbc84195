"""Replacements: those that meet conditions, in the order of a listing, and how many there are."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypedDict

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Select
from sqlmodel import Session, col, select

from asmevo.registry.database.models import (
    CandidateRow,
    CodeObjectRow,
    JudgementRow,
    ReplacementRow,
    SecondTimingRow,
)
from asmevo.registry.errors import RegistryError
from asmevo.registry.judgement import judgement
from asmevo.registry.records import ReplacementRecord, Source


class ReplacementFilter(TypedDict, total=False):
    """What a replacement has to be; what is None or absent does not matter."""

    original_sha256: str | None
    kernel: str | None
    object_sha256: str | None
    candidate_id: str | None
    run_id: str | None
    device: str | None
    source: Source | None
    min_speedup: float | None


_EQUAL = {
    "original_sha256": ReplacementRow.original_sha256,
    "kernel": ReplacementRow.kernel,
    "object_sha256": ReplacementRow.object_sha256,
    "candidate_id": ReplacementRow.candidate_id,
    "device": ReplacementRow.device,
    "source": ReplacementRow.timing_source,
}

# 'measured' comes before 'modelled'. This is the order of the index ix_replacement_order.
_ORDER = (col(ReplacementRow.original_sha256), col(ReplacementRow.kernel),
          col(ReplacementRow.timing_source), col(ReplacementRow.speedup).desc(),
          col(ReplacementRow.id))


def replacement_records(session: Session, wanted: ReplacementFilter, *, limit: int | None = None,
                        offset: int = 0, judged: bool = True) -> tuple[ReplacementRecord, ...]:
    """See `Registry.replacements`."""
    # First which ones, from the index alone, and then all of those: a join of every row with
    # three tables, only to sort and drop most, took 70 ms of 100,000.
    chosen = (select(ReplacementRow.id).where(*_conditions(wanted)).order_by(*_ORDER)
              .limit(limit).offset(offset or None).subquery())
    query = _columns(judged).join(chosen, col(ReplacementRow.id) == chosen.c.id).order_by(*_ORDER)
    return tuple(_record(row) for row in session.execute(query))


def records_by_id(session: Session, ids: Collection[int]) -> dict[int, ReplacementRecord]:
    """Replacements by the numbers of their rows."""
    query = _columns(judged=True).where(col(ReplacementRow.id).in_(ids))
    return {row[0]: _record(row) for row in session.execute(query)}


def _conditions(wanted: ReplacementFilter) -> Iterator[ColumnElement[bool]]:
    for name, value in wanted.items():
        if value is None:
            continue
        if name == "run_id":
            yield col(ReplacementRow.candidate_id).in_(
                select(CandidateRow.id).where(CandidateRow.run_id == value))
        elif name == "min_speedup":
            yield col(ReplacementRow.speedup) >= value
        else:
            yield col(_EQUAL[name]) == value


def _columns(judged: bool) -> Select[Any]:
    """Columns rather than rows of the models, which would be kept and watched for changes."""
    data = col(JudgementRow.data) if judged else sa.null().label("data")
    columns: tuple[Any, ...] = (
        col(ReplacementRow.id), col(ReplacementRow.original_sha256), col(ReplacementRow.kernel),
        col(CodeObjectRow.isa), col(ReplacementRow.candidate_id), col(CandidateRow.run_id),
        col(ReplacementRow.object_sha256), col(ReplacementRow.speedup),
        col(ReplacementRow.timing_source), col(ReplacementRow.device),
        col(ReplacementRow.evidence_complete), col(ReplacementRow.created),
        col(SecondTimingRow.speedup).label("again"), col(SecondTimingRow.confirmed), data)
    query: Select[Any] = (
        sa.select(*columns).select_from(ReplacementRow)
        .join(CandidateRow, col(CandidateRow.id) == ReplacementRow.candidate_id)
        .join(CodeObjectRow, col(CodeObjectRow.sha256) == ReplacementRow.object_sha256)
        .outerjoin(SecondTimingRow,
                   col(SecondTimingRow.candidate_id) == ReplacementRow.candidate_id))
    if judged:
        query = query.outerjoin(JudgementRow,
                                col(JudgementRow.candidate_id) == ReplacementRow.candidate_id)
    return query


def _record(row: Sequence[Any]) -> ReplacementRecord:
    (number, original, kernel, isa, candidate, run, replacement, speedup, source, device,
     complete, created, again, confirmed, data) = row
    return ReplacementRecord(
        id=number, original_sha256=original, kernel=kernel, isa=isa, candidate_id=candidate,
        run_id=run, object_sha256=replacement, speedup=_speedup(speedup, replacement),
        timing_source=source, device=device, evidence_complete=complete, created=created,
        speedup_again=None if again is None else _speedup(again, replacement),
        # None: there is no second timing
        withdrawn=confirmed is False,
        judgement=None if data is None else judgement(data))


def _speedup(value: object, replacement: str) -> float:
    """SQLite keeps text and infinities in a column of numbers as well."""
    if not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise RegistryError(f"the record of replacement {replacement} is malformed: a "
                            f"speedup of {str(value)[:40]!r} is not a positive number")
    return float(value)
