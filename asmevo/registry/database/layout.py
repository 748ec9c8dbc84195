"""The tables of a new registry, made from the models."""

from __future__ import annotations

from sqlalchemy import Connection
from sqlmodel import Session

from asmevo.registry.database.migrations import stamp
from asmevo.registry.database.models import SCHEMA_VERSION, SchemaRow, Table


def lay_out(connection: Connection) -> None:
    """Make all tables in the transaction of ``connection``."""
    Table.metadata.create_all(connection)
    with Session(connection) as session:
        session.add(SchemaRow(id=1, version=SCHEMA_VERSION))
        session.flush()
        stamp(connection)
        session.commit()
