"""Rows as lines of JSON and back, every value checked against the type of its column."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from asmevo.registry.database.models import UtcDateTime
from asmevo.registry.database.row_digest import COLUMN, values_digest
from asmevo.registry.parcel.errors import ParcelError, ParcelFault

MAX_LINE = 16 << 20
"""Bytes of one row as text; what JSON makes of them takes some 30 times that at worst."""

_INTEGERS = range(-(1 << 63), 1 << 63)


def surrogate(table: sa.FromClause) -> sa.ColumnElement[Any] | None:
    """The column whose numbers every database gives out itself, where there is one."""
    column = getattr(table, "autoincrement_column", None)
    return column if isinstance(column, sa.Column) else None


def carried(table: sa.Table) -> tuple[sa.Column[Any], ...]:
    """The columns of a table that go from one registry to another."""
    return tuple(c for c in table.columns if c is not surrogate(table))


def encode(table: sa.Table, values: Mapping[str, Any]) -> bytes:
    """A row as one line, without its end. Raises `ParcelError` for one that does not fit."""
    row = {c.name: _plain(values[c.name]) for c in carried(table)}
    line = json.dumps([table.name, row], allow_nan=False, sort_keys=True,
                      separators=(",", ":")).encode()
    if len(line) > MAX_LINE:
        raise ParcelError(ParcelFault.TOO_LARGE,
                          f"a row of table {table.name} has {len(line)} bytes, more than "
                          f"{MAX_LINE}")
    return line


def decode(table: sa.Table, row: object) -> dict[str, Any]:
    """The values of a row whose digest is right. Raises `ValueError`."""
    columns = carried(table)
    if not isinstance(row, dict) or set(row) != {c.name for c in columns}:
        raise ValueError(f"a row has not the columns of table {table.name}")
    values = {c.name: _value(c, row[c.name]) for c in columns}
    if values[COLUMN] != values_digest(table, values):
        raise ValueError(f"the digest of a row of table {table.name} is not that of its values")
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return value


def _value(column: sa.Column[Any], value: Any) -> Any:
    if value is None:
        if not column.nullable:
            raise ValueError(f"{column} has no value")
        return None
    made = _converted(column, value)
    if made is None:
        raise ValueError(f"{column} is {json.dumps(value)[:60]}, which it cannot be")
    return made


def _converted(column: sa.Column[Any], value: Any) -> Any | None:
    """The value as the column holds it; None where it cannot."""
    kind = column.type
    if isinstance(kind, sa.JSON):
        wanted = list if column.name in _LISTS else dict
        return value if isinstance(value, wanted) else None
    if isinstance(kind, UtcDateTime):
        return _time(value)
    if isinstance(kind, sa.Boolean):
        return value if isinstance(value, bool) else None
    if isinstance(kind, sa.Integer):
        return value if type(value) is int and value in _INTEGERS else None
    if isinstance(kind, sa.Float):
        number = type(value) in (int, float) and math.isfinite(value)
        return float(value) if number else None
    if not isinstance(value, str) or "\0" in value or not _is_unicode(value):
        return None
    length = getattr(kind, "length", None)
    return value if length is None or len(value) <= length else None


_LISTS = frozenset({"kernels", "edits", "samples"})
"""Columns of JSON whose values are lists, not objects."""


def _time(value: Any) -> datetime | None:
    """In exactly one form, so that equal content has equal bytes."""
    if not isinstance(value, str) or len(value) != 32 or not value.endswith("+00:00"):
        return None
    made = datetime.fromisoformat(value)
    return made if made.isoformat(timespec="microseconds") == value else None


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text) if not text.isascii() else True
