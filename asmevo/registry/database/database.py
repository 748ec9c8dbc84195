"""The database behind a registry: connections, schema, transactions, errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlmodel import Session, select

from asmevo.registry.database.backend import RELAXED, WRITE, Backend
from asmevo.registry.database.migrations import OLDEST, current, upgrade
from asmevo.registry.database.models import SCHEMA_VERSION, SchemaRow
from asmevo.registry.errors import RegistryError, RegistryMissingError


class Database:
    """What `Backend` reaches, opened on first use, with its schema brought up to date.

    A reader never creates it.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._engine: Engine | None = None
        self._pid = 0

    @property
    def place(self) -> str:
        """What names it in messages; never with a password."""
        return self._backend.place

    @property
    def folder(self) -> Path | None:
        """Where its files lie, if they are on this machine's disk."""
        return self._backend.folder

    def exists(self) -> bool:
        """Whether there is a registry yet. Raises `RegistryError`."""
        try:
            with self._explained("cannot be opened"):
                self._opened(create=False)
        except RegistryMissingError:
            return False
        return True

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session over one consistent snapshot. Raises `RegistryError`."""
        with self._explained("holds a malformed row"):
            engine = self._opened(create=False)
            with Session(engine.execution_options(**self._backend.read_options)) as session:
                yield session

    @contextmanager
    def write(self, *, relaxed: bool = False) -> Iterator[Session]:
        """One transaction, committed at the end or rolled back whole. Raises `RegistryError`.

        It holds the registry's write lock from its start, so that what it read cannot have changed
        when it writes. A ``relaxed`` one survives the end of this process at any moment, but a
        power failure only once the next one that is not has been committed.
        """
        with self._explained("refuses the record"):
            engine = _writing(self._opened(create=True), relaxed=relaxed)
            with Session(engine) as session, session.begin():
                session.connection()  # a session itself would begin with its first statement only
                yield session

    def check_writable(self) -> None:
        """Commit a transaction that changes nothing, then look for damage in the whole of it."""
        with self.write() as session:
            session.connection().exec_driver_sql("UPDATE registry_schema SET created = created")
        with self.read() as session:
            damage = self._backend.damage(session.connection())
        if damage is not None:
            raise RegistryError(f"registry database {self.place} is corrupt: {damage}")

    def close(self) -> None:
        """Close every connection; the next use opens it again."""
        engine, self._engine = self._engine, None
        if engine is not None:
            # A forked child must not close the connections it inherited: SQLite would release its
            # parent's POSIX locks (sqlite.org/howtocorrupt.html, section 2.6), and PostgreSQL's
            # server would end its parent's session.
            engine.dispose(close=self._pid == os.getpid())

    def _opened(self, *, create: bool) -> Engine:
        if self._engine is not None and self._pid == os.getpid():
            return self._engine
        self.close()
        engine = self._backend.engine(create=create)
        try:
            if not self._has_tables(engine):
                if not create:
                    self._backend.refuse_empty()
                with _writing(engine).begin() as connection:
                    self._backend.lay_out(connection)
            version = self._version(engine)
            if version < SCHEMA_VERSION:
                self._upgrade(engine, version)
        except BaseException:
            engine.dispose()
            raise
        self._engine, self._pid = engine, os.getpid()
        return engine

    def _has_tables(self, engine: Engine) -> bool:
        with engine.connect() as connection:
            return sa.inspect(connection).has_table(str(SchemaRow.__tablename__))

    def _version(self, engine: Engine) -> int:
        with Session(engine) as session:
            versions = session.exec(select(SchemaRow.version)).all()
        if len(versions) != 1 or not OLDEST <= versions[0] <= SCHEMA_VERSION:
            found = versions[0] if len(versions) == 1 else "unknown"
            raise RegistryError(f"registry {self.place} has schema version {found}, but this "
                                f"version of AsmEvo reads and writes version {SCHEMA_VERSION}")
        return versions[0]

    def _upgrade(self, engine: Engine, version: int) -> None:
        try:
            with _writing(engine).begin() as connection:
                # Whoever may not write hears of it before anything else is loaded or done.
                connection.execute(sa.update(SchemaRow).values(version=SchemaRow.version))
                upgrade(connection)
                if current(connection) != SCHEMA_VERSION:
                    raise RegistryError(f"registry {self.place} says that it has schema version "
                                        f"{version}, but its tables are those of another")
        except DBAPIError as error:
            if error.orig is None or not self._backend.forbids_writing(error.orig):
                raise
            raise RegistryError(
                f"registry {self.place} has schema version {version}, which has to be brought to "
                f"version {SCHEMA_VERSION} first: any command of asmevo-registry does so, run by "
                "someone who may write it") from error

    @contextmanager
    def _explained(self, otherwise: str) -> Iterator[None]:
        try:
            yield
        except PoolTimeoutError as error:
            raise RegistryError(f"too many open connections to {self.place}") from error
        except DBAPIError as error:
            reason = self._backend.explain(error.orig or error)
            raise RegistryError(f"registry database {self.place} {reason}") from error
        except (SQLAlchemyError, ValueError, TypeError, OverflowError, RecursionError) as error:
            # What a column cannot hold (a lone surrogate, an integer beyond 64 bits), or what a
            # tampered one should not (broken JSON, a number or bytes as a date, an unknown status).
            reason = str(error).partition("\n")[0]
            raise RegistryError(
                f"registry database {self.place} {otherwise}: {reason}") from error


def _writing(engine: Engine, *, relaxed: bool = False) -> Engine:
    return engine.execution_options(**{WRITE: True, RELAXED: relaxed})
