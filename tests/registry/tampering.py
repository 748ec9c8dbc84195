"""Changes of a registry's rows past the registry, in whatever database they are."""

from __future__ import annotations

import sqlalchemy as sa

from asmevo.registry.registry import Registry


def execute(registry: Registry, statement: str, **values: object) -> None:
    """Run one statement; ``:name`` in it stands for a value."""
    with registry._database.write() as session:
        session.connection().execute(sa.text(statement), values)


def count(registry: Registry, table: str) -> int:
    """The number of rows of a table."""
    with registry._database.read() as session:
        found: int = session.connection().exec_driver_sql(
            f"SELECT count(*) FROM {table}").scalar_one()
    return found
