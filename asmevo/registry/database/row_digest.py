"""The digest of a row: what `verify` recomputes to see that nobody changed a record.

It finds accidents and edits by hand; who wants to deceive recomputes it too, against which only a
signature helps.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.orm import Mapper

COLUMN = "digest"
"""The column that holds the digest, and that it does not cover."""


class Row(Protocol):
    """A row of a mapped table."""

    digest: str


def row_digest(row: Row) -> str:
    """The digest that a row should have, as 64 hexadecimal digits."""
    table = sa.inspect(type(row)).local_table
    return values_digest(table, {c.name: getattr(row, c.name) for c in table.columns})


def values_digest(table: sa.FromClause, values: Mapping[str, Any]) -> str:
    """`row_digest` of values by column name.

    SHA-256 of the canonical JSON (sorted keys, no white space) of all columns but the digest and a
    number that only the database gives out, so that a record has the same in every registry. Each
    value becomes what a database of the column's type gives back: a whole number in a column of
    floating-point ones is ``2.0``. Raises `ValueError` for what a column of its type, or JSON,
    cannot hold.
    """
    surrogate = getattr(table, "autoincrement_column", None)
    try:
        content = {
            column.name: _plain(column, values[column.name])
            for column in table.columns
            if column.name != COLUMN and column is not surrogate
        }
        text = json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except TypeError as error:
        raise ValueError(f"a row of table '{table.description}': {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()


def keep_digests(base: type) -> None:
    """Set the digest of every row of the tables below ``base`` whenever it is written."""

    def write(mapper: Mapper[Any], connection: sa.Connection, target: Any) -> None:
        target.digest = row_digest(target)

    event.listen(base, "before_insert", write, propagate=True)
    event.listen(base, "before_update", write, propagate=True)


def _plain(column: sa.ColumnElement[Any], value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if value is None or isinstance(column.type, sa.JSON):
        return value
    for kind, convert in _PLAIN.items():
        if isinstance(column.type, kind):
            return convert(value)
    return value


def _number(value: Any) -> float:
    # SQLite keeps text in a column of numbers as well, and float() reads more than numbers.
    if not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:40]!r} is not a number")
    return float(value)


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    sa.Boolean: bool, sa.Integer: operator.index, sa.Float: _number}
