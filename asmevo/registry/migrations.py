"""From the schema of an older registry to the current one, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from asmevo.registry.models import SCHEMA_VERSION, Table

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


_STEPS: Mapping[int, Callable[[Connection], None]] = {
    1: _captures, 2: _second_timings, 3: _search_events, 4: _judgements}


def upgrade(connection: Connection) -> None:
    """Bring a database up to date, within the transaction of ``connection``.

    Another process may have done so since the version was looked at, hence it is read again.
    """
    version = connection.exec_driver_sql("SELECT version FROM registry_schema").scalar_one()
    for step in range(version, SCHEMA_VERSION):
        _STEPS[step](connection)
    connection.exec_driver_sql("UPDATE registry_schema SET version = ?", (SCHEMA_VERSION,))
