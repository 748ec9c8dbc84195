"""The databases that can hold a registry's rows: all that differs between them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from sqlalchemy import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError

from asmevo.registry.errors import RegistryError

WRITE = "asmevo_write"
"""Execution option of transactions that write: they hold the registry's one write lock."""

RELAXED = "asmevo_relaxed"
"""Execution option of those that need not survive a power failure on their own."""

SUPPORTED = ("sqlite:///<file>", "postgresql+psycopg://<user>@<host>/<database>")


class Backend(ABC):
    """One database of one kind.

    ``place`` names it in messages and ``home`` says where a registry is missing; neither ever
    holds a password. ``folder`` is where its files lie, if they are on this machine's disk.
    """

    place: str
    home: str
    folder: Path | None = None
    read_options: Mapping[str, Any] = {}
    """Execution options that give a session one consistent snapshot."""

    @abstractmethod
    def engine(self, *, create: bool) -> Engine:
        """Connections to it, whose transactions start as `WRITE` and `RELAXED` say.

        Where the database is a file of ours, it is created whole if it is missing. Raises
        `RegistryMissingError` if it is and may not be created, `RegistryError` if it cannot.
        """

    @abstractmethod
    def refuse_empty(self) -> NoReturn:
        """Tell a reader that the database holds no registry. Raises `RegistryError`."""

    @abstractmethod
    def lay_out(self, connection: Connection) -> None:
        """Make the tables in a database that has none; the write lock is held.

        Raises `RegistryError` where that is not for us to do.
        """

    @abstractmethod
    def explain(self, error: BaseException) -> str:
        """The cause of a driver's error, as the end of a sentence that begins with the place."""

    @abstractmethod
    def forbids_writing(self, error: BaseException) -> bool:
        """Whether a driver's error says that this process may only read."""

    def damage(self, connection: Connection) -> str | None:
        """What is corrupt in the whole database; None where nothing is, or nothing looks."""
        return None


def backend(folder: Path, url: str | None, *, busy_timeout_s: float) -> Backend:
    """The database of a registry: a file in its folder unless ``url`` names another.

    Raises `RegistryError`, which never repeats the URL: that may hold a password.
    """
    from asmevo.registry.database.sqlite import DATABASE_NAME, SQLite, file_of

    if url is None:
        return SQLite(folder / DATABASE_NAME, busy_timeout_s=busy_timeout_s)
    parsed = _parsed(url)
    match parsed.drivername:
        case "sqlite" | "sqlite+pysqlite":
            return SQLite(file_of(parsed), busy_timeout_s=busy_timeout_s)
        case "postgresql" | "postgresql+psycopg":
            from asmevo.registry.database.postgresql import PostgreSQL

            return PostgreSQL(parsed, busy_timeout_s=busy_timeout_s)
    raise RegistryError(f"registry databases of kind '{parsed.drivername}' are not supported; "
                        f"tested are {' and '.join(SUPPORTED)}")


def dumps(value: Any) -> str:
    """The JSON of columns, the same in every database."""
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":"))


def loads(text: Any) -> Any:
    """The value of a column of `dumps`. Raises `ValueError`, also for what is no text."""
    try:
        return json.loads(text)
    except TypeError as error:
        raise ValueError(f"a JSON column holds a value of type {type(text).__name__}") from error


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):  # ValueError: a port that is no number
        # Without the cause, which repeats the URL.
        raise RegistryError("the registry's url is not a database URL; supported are "
                            f"{' and '.join(SUPPORTED)}") from None
