"""From the schema of an older registry to the current one, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, select

from asmevo.registry.models import SCHEMA_VERSION, Table
from asmevo.registry.row_digest import COLUMN, values_digest

OLDEST = 1
"""The oldest schema that can still be read and brought up to date."""


def _captures(connection: Connection) -> None:
    """Version 2 has a table of captures more."""
    Table.metadata.tables["capture"].create(connection, checkfirst=True)


def _second_timings(connection: Connection) -> None:
    """Version 3 has a table of second timings more."""
    Table.metadata.tables["second_timing"].create(connection, checkfirst=True)


def _search_events(connection: Connection) -> None:
    """Version 4 has a table of the events of searches more."""
    Table.metadata.tables["search_event"].create(connection, checkfirst=True)


def _judgements(connection: Connection) -> None:
    """Version 5 has a table of how replacements were judged more."""
    Table.metadata.tables["judgement"].create(connection, checkfirst=True)


def _digests(connection: Connection) -> None:
    """Version 6 has a digest in every row, and tables of statements and signatures more."""
    for table in Table.metadata.sorted_tables:
        if table.name in ("statement", "signature"):
            table.create(connection, checkfirst=True)
            continue
        connection.exec_driver_sql(
            f"ALTER TABLE {table.name} ADD COLUMN {COLUMN} VARCHAR(64) DEFAULT '' NOT NULL")
        [key] = table.primary_key.columns
        for row in connection.execute(select(table)).mappings().all():
            connection.execute(table.update().where(key == row[key.name]).values(
                digest=values_digest(table, dict(row))))


_STEPS: Mapping[int, Callable[[Connection], None]] = {
    1: _captures, 2: _second_timings, 3: _search_events, 4: _judgements,
    5: _digests}


def upgrade(connection: Connection) -> None:
    """Bring a database up to date, within the transaction of ``connection``.

    Another process may have done so since the version was looked at, hence it is read again.
    """
    version = connection.exec_driver_sql("SELECT version FROM registry_schema").scalar_one()
    for step in range(version, SCHEMA_VERSION):
        _STEPS[step](connection)
    if version == SCHEMA_VERSION:
        return
    schema = Table.metadata.tables["registry_schema"]
    [row] = connection.execute(select(schema)).mappings()
    new = {**row, "version": SCHEMA_VERSION}
    connection.execute(schema.update().values(**new | {COLUMN: values_digest(schema, new)}))
