"""Records of replacements: those that stand under the same identity, the best first."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, TypedDict

import sqlalchemy as sa
from sqlalchemy import Select
from sqlmodel import Session, col

from asmevo.registry.database.models import (
    CandidateRow,
    CodeObjectRow,
    JudgementRow,
    ReplacementRow,
    SecondTimingRow,
)
from asmevo.registry.errors import RegistryError
from asmevo.registry.judgement import judgement
from asmevo.registry.records import ReplacementRecord


class Identities(TypedDict, total=False):
    """What a replacement belongs to; what is None or absent does not matter."""

    original_sha256: str | None
    kernel: str | None
    object_sha256: str | None
    candidate_id: str | None
    run_id: str | None


_COLUMNS = {
    "original_sha256": ReplacementRow.original_sha256,
    "kernel": ReplacementRow.kernel,
    "object_sha256": ReplacementRow.object_sha256,
    "candidate_id": ReplacementRow.candidate_id,
    "run_id": CandidateRow.run_id,
}

# 'measured' comes before 'modelled'. This is the order of the index ix_replacement_order.
_ORDER = (col(ReplacementRow.original_sha256), col(ReplacementRow.kernel),
          col(ReplacementRow.timing_source), col(ReplacementRow.speedup).desc(),
          col(ReplacementRow.id))


def replacement_records(session: Session, of: Identities) -> tuple[ReplacementRecord, ...]:
    """See `Registry.replacements`."""
    query = _query().where(*(col(_COLUMNS[name]) == value for name, value in of.items()
                             if value is not None)).order_by(*_ORDER)
    return tuple(_record(row) for row in session.execute(query))


def records_by_id(session: Session, ids: Collection[int]) -> dict[int, ReplacementRecord]:
    """Replacements by the numbers of their rows."""
    query = _query().where(col(ReplacementRow.id).in_(ids))
    return {row[0]: _record(row) for row in session.execute(query)}


def _query() -> Select[Any]:
    """Columns rather than rows of the models, which would be kept and watched for changes."""
    columns: tuple[Any, ...] = (
        col(ReplacementRow.id), col(ReplacementRow.original_sha256), col(ReplacementRow.kernel),
        col(CodeObjectRow.isa), col(ReplacementRow.candidate_id), col(CandidateRow.run_id),
        col(ReplacementRow.object_sha256), col(ReplacementRow.speedup),
        col(ReplacementRow.timing_source), col(ReplacementRow.device),
        col(ReplacementRow.evidence_complete), col(ReplacementRow.created),
        col(SecondTimingRow.speedup).label("again"), col(SecondTimingRow.confirmed),
        col(JudgementRow.data))
    return (
        sa.select(*columns).select_from(ReplacementRow)
        .join(CandidateRow, col(CandidateRow.id) == ReplacementRow.candidate_id)
        .join(CodeObjectRow, col(CodeObjectRow.sha256) == ReplacementRow.object_sha256)
        .outerjoin(SecondTimingRow,
                   col(SecondTimingRow.candidate_id) == ReplacementRow.candidate_id)
        .outerjoin(JudgementRow, col(JudgementRow.candidate_id) == ReplacementRow.candidate_id))


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
