"""Replacements that are asked for by what they are: filters, an order and a limit, as one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from sqlalchemy import ColumnElement, and_, func, not_, or_
from sqlmodel import Session, col, select

from asmevo.registry.judgement import LEAST, MOST
from asmevo.registry.models import JudgementRow, ReplacementRow, SecondTimingRow
from asmevo.registry.records import ReplacementRecord, ReplacementStatus, Source
from asmevo.registry.rows import replacement_records

_AT_ONCE = 10_000
"""Records read by one query; SQLite takes 32,766 variables (sqlite.org/limits.html)."""


class Order(StrEnum):
    """What comes first: of each original and kernel the best, the fastest, or the newest.

    Measured speedups and modelled ones are not comparable, so that measured ones are ahead of all
    modelled ones but in the order of time.
    """

    ORIGINAL = "original"
    KERNEL = "kernel"
    SPEEDUP = "speedup"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which replacements; what is None or empty excludes nothing.

    ``original`` are the first digits of a SHA-256, ``kernel`` and ``device`` a part of the name in
    whatever case, ``since`` is a point in time and ``limit`` the most that are read.
    """

    original: str = ""
    kernel: str = ""
    device: str = ""
    source: Source | None = None
    status: ReplacementStatus | None = None
    min_speedup: float | None = None
    since: datetime | None = None
    order: Order = Order.ORIGINAL
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """The replacements that were read, and how many there are without the limit."""

    records: tuple[ReplacementRecord, ...]
    total: int


def selected(session: Session, selection: Selection) -> Selected:
    """The replacements that ``selection`` describes, in its order."""
    query = _joined(select(ReplacementRow.id), selection).order_by(*_ORDERS[selection.order])
    if selection.limit is not None:
        query = query.limit(selection.limit)
    ids = [cast(int, number) for number in session.exec(query)]
    total = len(ids)
    if total == selection.limit:
        total = session.exec(_joined(select(func.count(col(ReplacementRow.id))), selection)).one()
    return Selected(_records(session, ids), total)


def _records(session: Session, ids: Sequence[int]) -> tuple[ReplacementRecord, ...]:
    found: dict[int, ReplacementRecord] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = col(ReplacementRow.id).in_(ids[start:start + _AT_ONCE])
        found.update((record.id, record) for record in replacement_records(session, some))
    return tuple(found[number] for number in ids if number in found)


def _joined(query: Any, selection: Selection) -> Any:
    """The query with the filters, and with the tables that these need."""
    if selection.status is not None:
        query = (query
                 .outerjoin(SecondTimingRow,
                            col(SecondTimingRow.candidate_id) == ReplacementRow.candidate_id)
                 .outerjoin(JudgementRow,
                            col(JudgementRow.candidate_id) == ReplacementRow.candidate_id)
                 .where(_STATUSES[selection.status]))
    return query.where(*_conditions(selection))


def _conditions(selection: Selection) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if selection.original:
        # A range, which an index serves; a digit is below any letter behind f.
        first = selection.original.lower()
        found += [col(ReplacementRow.original_sha256) >= first,
                  col(ReplacementRow.original_sha256) < first + "g"]
    for column, part in ((ReplacementRow.kernel, selection.kernel),
                         (ReplacementRow.device, selection.device)):
        if part:
            found.append(col(column).icontains(part, autoescape=True))
    if selection.source is not None:
        found.append(col(ReplacementRow.timing_source) == selection.source)
    if selection.min_speedup is not None:
        found.append(col(ReplacementRow.speedup) >= selection.min_speedup)
    if selection.since is not None:
        found.append(col(ReplacementRow.created) >= selection.since)
    return found


def _weaker() -> ColumnElement[bool]:
    """`Judgement.weaknesses` of the joined judgement is not empty; there may be none."""
    data = col(JudgementRow.data)
    return or_(
        col(JudgementRow.candidate_id).is_(None),
        *(data[name].as_float() < least for name, least in LEAST.items()),
        *(data[name].as_float() > most for name, most in MOST.items()),
        not_(data["sanitize"].as_boolean()),
        *(data[name].as_string() != "[]" for name in ("extra_ops", "replaced")),
        *(data[name].as_integer() < 1 for name in ("dispatches", "held_out")))


_timed_again = col(SecondTimingRow.candidate_id).is_not(None)
_confirmed = col(SecondTimingRow.confirmed).is_(True)
_withdrawn = and_(_timed_again, not_(_confirmed))
_STATUSES = {
    ReplacementStatus.WITHDRAWN: _withdrawn,
    ReplacementStatus.WEAKER: and_(not_(_withdrawn), _weaker()),
    ReplacementStatus.CONFIRMED: and_(_timed_again, _confirmed, not_(_weaker())),
    ReplacementStatus.COMMITTED: and_(not_(_timed_again), not_(_weaker())),
}

_MODELLED = col(ReplacementRow.timing_source) != "measured"
_BEST = (_MODELLED, col(ReplacementRow.speedup).desc(), col(ReplacementRow.id))
_ORDERS = {
    Order.ORIGINAL: (col(ReplacementRow.original_sha256), col(ReplacementRow.kernel), *_BEST),
    Order.KERNEL: (col(ReplacementRow.kernel), *_BEST),
    Order.SPEEDUP: _BEST,
    Order.DATE: (col(ReplacementRow.created).desc(), col(ReplacementRow.id).desc()),
}
