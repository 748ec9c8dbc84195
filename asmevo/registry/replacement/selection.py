"""Replacements that are asked for by what they are: filters, an order and a limit, as one query."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, cast, func, not_, or_
from sqlmodel import Session, col, select

from asmevo.registry.database.models import JudgementRow, ReplacementRow, SecondTimingRow
from asmevo.registry.errors import RegistryError
from asmevo.registry.judgement import LEAST, MOST, Judgement, judgement
from asmevo.registry.records import ReplacementRecord, ReplacementStatus, Source
from asmevo.registry.replacement.listing import records_by_id

_AT_ONCE = 10_000
"""Records read by one query; SQLite takes 32,766 variables (sqlite.org/limits.html)."""

_MOST_KINDS = 10_000
"""Judgements that differ in their text, up to which they are compared as texts."""

_RARE = (ReplacementStatus.WEAKER, ReplacementStatus.WITHDRAWN)


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
    strong = None if selection.status is None else strong_texts(session)
    order: Sequence[Any] = _ORDERS[selection.order]
    if selection.status in _RARE and selection.order is Order.ORIGINAL:
        # Not in the order of the index: looking rows of three tables up for each of its entries
        # took 2 s of 100,000, reading them in the order they were stored and sorting 0.2 s.
        order = (col(ReplacementRow.original_sha256).concat(""), *order)
    query = _joined(select(ReplacementRow.id), selection, strong).order_by(*order)
    if selection.limit is not None:
        query = query.limit(selection.limit)
    ids = list(session.exec(query))
    total = len(ids)
    if total == selection.limit:
        total = session.exec(_joined(select(func.count(col(ReplacementRow.id))), selection,
                                     strong)).one()
    return Selected(_records(session, ids), total)


def _records(session: Session, ids: Sequence[int]) -> tuple[ReplacementRecord, ...]:
    found: dict[int, ReplacementRecord] = {}
    for start in range(0, len(ids), _AT_ONCE):
        found |= records_by_id(session, ids[start:start + _AT_ONCE])
    return tuple(found[number] for number in ids if number in found)


def _joined(query: Any, selection: Selection, strong: frozenset[str] | None) -> Any:
    """The query with the filters, and with the tables that these need."""
    if selection.status is not None:
        query = status_condition(query, selection.status, strong)
    return query.where(*_conditions(selection))


def status_condition(query: Any, status: ReplacementStatus,
                     strong: frozenset[str] | None) -> Any:
    """A query of replacements with the condition that they stand so; see `strong_texts`."""
    return (query
            .outerjoin(SecondTimingRow,
                       col(SecondTimingRow.candidate_id) == ReplacementRow.candidate_id)
            .outerjoin(JudgementRow, col(JudgementRow.candidate_id) == ReplacementRow.candidate_id)
            .where(_status(status, strong)))


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


def strong_texts(session: Session) -> frozenset[str] | None:
    """The judgements without a weakness as they are stored; None where there are too many kinds.

    Many replacements are judged alike, and comparing texts is much faster than looking into each.
    Raises `RegistryError` for one that is malformed.
    """
    kinds = session.exec(select(cast(col(JudgementRow.data), Text)).distinct()
                         .limit(_MOST_KINDS + 1)).all()
    if len(kinds) > _MOST_KINDS:
        return None
    return frozenset(text for text in kinds if not _judgement(text).weaknesses())


def _judgement(text: str) -> Judgement:
    try:
        return judgement(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise RegistryError("the record of how a replacement was judged is no JSON") from error


def _weaker(strong: frozenset[str] | None) -> ColumnElement[bool]:
    """Whether `Judgement.weaknesses` of the joined judgement is not empty; there may be none."""
    data = col(JudgementRow.data)
    absent = col(JudgementRow.candidate_id).is_(None)
    if strong is not None:
        return or_(absent, cast(data, Text).not_in(strong))
    return or_(
        absent,
        *(data[name].as_float() < least for name, least in LEAST.items()),
        *(data[name].as_float() > most for name, most in MOST.items()),
        not_(data["sanitize"].as_boolean()),
        *(data[name].as_string() != "[]" for name in ("extra_ops", "replaced")),
        *(data[name].as_integer() < 1 for name in ("dispatches", "held_out")))


def _status(status: ReplacementStatus, strong: frozenset[str] | None) -> ColumnElement[bool]:
    timed_again = col(SecondTimingRow.candidate_id).is_not(None)
    confirmed = col(SecondTimingRow.confirmed).is_(True)
    withdrawn = and_(timed_again, not_(confirmed))
    if status is ReplacementStatus.WITHDRAWN:
        return withdrawn
    if status is ReplacementStatus.WEAKER:
        return and_(not_(withdrawn), _weaker(strong))
    if status is ReplacementStatus.CONFIRMED:
        return and_(timed_again, confirmed, not_(_weaker(strong)))
    return and_(not_(timed_again), not_(_weaker(strong)))


# 'measured' comes before 'modelled'; so has the index ix_replacement_order them.
_BEST = (col(ReplacementRow.timing_source), col(ReplacementRow.speedup).desc(),
         col(ReplacementRow.id))
_ORDERS = {
    Order.ORIGINAL: (col(ReplacementRow.original_sha256), col(ReplacementRow.kernel), *_BEST),
    Order.KERNEL: (col(ReplacementRow.kernel), *_BEST),
    Order.SPEEDUP: _BEST,
    Order.DATE: (col(ReplacementRow.created).desc(), col(ReplacementRow.id).desc()),
}
