"""The rows of a registry, each with the digest that it was written with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlmodel import Session

from asmevo.registry.audit.finding import Finding, FindingCode, shown
from asmevo.registry.database.models import Table
from asmevo.registry.database.row_digest import COLUMN, values_digest

Row: TypeAlias = Mapping[str, Any]
"""A row by the names of its columns."""

_BATCH = 1000
UNREADABLE = (ValueError, TypeError, AttributeError, OverflowError, RecursionError,
              SQLAlchemyError)
"""What it may raise to look at a row of any content."""


def tables() -> tuple[sa.Table, ...]:
    """All tables, each after those that it refers to."""
    return tuple(Table.metadata.sorted_tables)


def audit_schema(session: Session) -> Iterator[Finding]:
    """Tables and columns that are not there."""
    inspector = sa.inspect(session.connection())
    present = set(inspector.get_table_names())
    for table in tables():
        if table.name not in present:
            yield Finding(FindingCode.SCHEMA, f"table {table.name}", "the table is missing")
            continue
        columns = {str(column["name"]) for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in columns:
                yield Finding(FindingCode.SCHEMA, f"table {table.name}",
                              f"its column '{column.name}' is missing")


def count_rows(session: Session) -> int:
    """How many rows there are in all tables."""
    return sum(int(session.connection().execute(
        sa.select(sa.func.count()).select_from(table)).scalar_one()) for table in tables())


def audit_rows(session: Session) -> Iterator[Finding]:
    """Rows that cannot be read, or are not what was written."""
    for table in tables():
        for row in read_rows(session, table):
            if isinstance(row, Finding):
                yield row
                continue
            try:
                digest = values_digest(table, row)
            except UNREADABLE as error:
                yield _unreadable(subject_of(table, row), error)
                continue
            if row[COLUMN] != digest:
                yield Finding(FindingCode.ROW_ALTERED, subject_of(table, row),
                              "its digest is not that of its values" if row[COLUMN] else
                              "it has no digest: it was not written by AsmEvo")


def read_rows(session: Session, table: sa.Table) -> Iterator[Row | Finding]:
    """The rows of a table; one that cannot be read costs itself only."""
    if session.connection().dialect.name != "sqlite":
        yield from values_of(session, sa.select(table))
        return
    # SQLite keeps any value in any column, also one that no row can be made of.
    number = sa.literal_column(f"{table.name}.rowid", sa.Integer)
    query = sa.select(table, number.label(_NUMBER)).order_by(number)
    last = -1 << 63
    while True:
        try:
            for row in values_of(session, query.where(number > last)):
                last = row[_NUMBER]
                yield row
            return
        except UNREADABLE as error:
            if isinstance(error, DBAPIError):
                raise
        for last in session.connection().execute(  # noqa: B020
                sa.select(number).select_from(table).where(number > last)
                .order_by(number).limit(_BATCH)).scalars().all():
            try:
                yield next(values_of(session, query.where(number == last)))
            except UNREADABLE as error:
                yield _unreadable(f"{table.name} row {last}", error)


_NUMBER = "rowid_of_sqlite"


def subject_of(table: sa.Table, row: Row) -> str:
    """How a row is named in a finding."""
    keys = [shown(row[c.name]) for c in table.primary_key.columns]
    return f"{table.name} {' '.join(keys)}"


def _unreadable(subject: str, error: Exception) -> Finding:
    reason = str(error).partition("\n")[0][:200]
    return Finding(FindingCode.ROW_UNREADABLE, subject, f"it cannot be read: {shown(reason)}")


def values_of(session: Session, query: sa.Select[*tuple[Any, ...]]) -> Iterator[Row]:
    """The rows of a query, some at a time."""
    with session.connection().execute(query.execution_options(yield_per=_BATCH)) as result:
        for rows in result.mappings().partitions():
            yield from cast("list[Row]", rows)
