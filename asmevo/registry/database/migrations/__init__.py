"""From the schema of an older registry to the current one, with Alembic.

``versions`` holds one revision a schema, named by its number; the tables that it makes are spelled
out there and never change again, while `asmevo.registry.database.models` says what they are today.
A change of a table there needs a new revision and a higher `SCHEMA_VERSION`.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from asmevo.registry.database.models import SCHEMA_VERSION

if TYPE_CHECKING:
    from alembic.config import Config

OLDEST = 1
"""The oldest schema that can be brought up to date."""

# Alembic keeps what it works on in module globals.
_one_at_a_time = threading.Lock()


def upgrade(connection: sa.Connection, to: int = SCHEMA_VERSION) -> None:
    """Bring a database to schema ``to``, an empty one too, in the transaction of ``connection``.

    That must hold the write lock: another process may have done so since the version was looked
    at, and then there is nothing left to do.
    """
    from alembic import command

    with _one_at_a_time:
        config = _config(connection)
        inspector = sa.inspect(connection)
        # Up to version 5 registries knew nothing of Alembic.
        if inspector.has_table("registry_schema") and not inspector.has_table("alembic_version"):
            command.stamp(config, revision(current(connection)))
        command.upgrade(config, revision(to))


def stamp(connection: sa.Connection) -> None:
    """Note that tables which were made from the models are those of the current schema."""
    from alembic import command

    with _one_at_a_time:
        command.stamp(_config(connection), revision(SCHEMA_VERSION))


def revision(schema: int) -> str:
    """The name of the revision that makes a schema."""
    return f"{schema:04}"


def current(connection: sa.Connection) -> int:
    """The schema that a database has."""
    found: int = connection.exec_driver_sql("SELECT version FROM registry_schema").scalar_one()
    return found


def _config(connection: sa.Connection) -> Config:
    from alembic.config import Config

    # Its progress is of no interest to somebody who lists a registry.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    # '%' would be taken for the start of a placeholder.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
