"""What the registry holds under the first characters of an identity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlmodel import Session, col, select

from asmevo.registry.database.models import (
    CandidateRow,
    CaptureRow,
    CodeObjectRow,
    DispatchRow,
    RunRow,
    Table,
)

MIN_PREFIX = 6
"""Characters that abbreviate an identity at least."""


class Kind(StrEnum):
    """What an identity is of."""

    OBJECT = "object"
    CANDIDATE = "candidate"
    RUN = "run"
    DISPATCH = "dispatch"
    CAPTURE = "capture"


@dataclass(frozen=True, slots=True)
class Identity:
    """Something stored: SHA-256 of an object, dispatch or capture, id of a run or candidate."""

    kind: Kind
    id: str


_TABLES: dict[Kind, tuple[type[Table], Any]] = {
    Kind.OBJECT: (CodeObjectRow, CodeObjectRow.sha256),
    Kind.CANDIDATE: (CandidateRow, CandidateRow.id),
    Kind.RUN: (RunRow, RunRow.id),
    Kind.DISPATCH: (DispatchRow, DispatchRow.sha256),
    Kind.CAPTURE: (CaptureRow, CaptureRow.sha256),
}
_HASHED = (Kind.OBJECT, Kind.DISPATCH, Kind.CAPTURE)
_HEX = frozenset("0123456789abcdef")


def identities(session: Session, text: str, limit: int) -> tuple[Identity, ...]:
    """What ``text`` is the identity of, or else what it abbreviates: of each kind at most
    ``limit``. Nothing is abbreviated by less than `MIN_PREFIX` characters."""
    exact = [Identity(kind, name) for kind, (table, _) in _TABLES.items()
             for name in {text, text.lower()} if session.get(table, name) is not None]
    if exact or len(text) < MIN_PREFIX:
        return tuple(exact)
    found: list[Identity] = []
    for kind, (_, column) in _TABLES.items():
        if kind in _HASHED:
            if set(text.lower()) - _HEX:
                continue
            # A range, which an index serves; a digit is below any letter behind f.
            first = text.lower()
            query = select(column).where(col(column) >= first, col(column) < first + "g")
        else:
            query = select(column).where(col(column).startswith(text, autoescape=True))
        found += [Identity(kind, name)
                  for name in session.exec(query.order_by(column).limit(limit))]
    return tuple(found)
