"""The SQLite database behind a registry: creation, connections, transactions, errors."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import urllib.parse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlmodel import Session, select

from asmevo.durable import sync_folder
from asmevo.registry.errors import RegistryError, cannot
from asmevo.registry.migrations import OLDEST, upgrade
from asmevo.registry.models import SCHEMA_VERSION, SchemaRow, Table
from asmevo.registry.turns import take_turn

_WRITE = "asmevo_write"
_RELAXED = "asmevo_relaxed"


class Database:
    """One SQLite file in WAL mode with foreign keys enforced. Opened on first use.

    A reader never creates the file. A file that this process may not write is opened read-only.
    """

    def __init__(self, file: Path, *, busy_timeout_s: float) -> None:
        self.file = file
        self._busy_timeout_s = busy_timeout_s
        self._engine: Engine | None = None
        self._pid = 0
        self._version = SCHEMA_VERSION

    def exists(self) -> bool:
        """Whether there is a database yet. Raises `RegistryError`."""
        try:
            return self.file.exists()
        except OSError as error:
            raise cannot("open registry database", self.file, error) from error

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session over one consistent snapshot. Raises `RegistryError`."""
        with (self._explained("holds a malformed row"),
              Session(self._opened(create=False)) as session):
            yield session

    @contextmanager
    def write(self, *, relaxed: bool = False) -> Iterator[Session]:
        """One transaction, committed at the end or rolled back whole. Raises `RegistryError`.

        It holds SQLite's write lock from its start, so that what it read cannot have changed when
        it writes. A ``relaxed`` one survives the end of this process at any moment, but a power
        failure only once the next one that is not has been committed.
        """
        with self._explained("refuses the record"):
            engine = self._opened(create=True).execution_options(
                **{_WRITE: True, _RELAXED: relaxed})
            with Session(engine) as session, session.begin():
                yield session

    def check_writable(self) -> None:
        """Commit a transaction that changes nothing, then look for damage in the whole file."""
        with self.write() as session:
            session.connection().exec_driver_sql("UPDATE registry_schema SET created = created")
        with self.read() as session:
            damage = session.connection().exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        if damage != "ok":
            raise RegistryError(f"registry database {self.file} is corrupt: {damage}")

    def close(self) -> None:
        """Close every connection; the next use opens the file again."""
        engine, self._engine = self._engine, None
        if engine is not None:
            # A forked child must not close the descriptors it inherited: doing so would release
            # its parent's POSIX locks (sqlite.org/howtocorrupt.html, section 2.6).
            engine.dispose(close=self._pid == os.getpid())

    def _opened(self, *, create: bool) -> Engine:
        if self._engine is not None and self._pid == os.getpid():
            return self._engine
        self.close()
        if not self.file.exists():
            if not create:
                raise RegistryError(f"no registry at {self.file.parent}")
            _create(self.file, self._busy_timeout_s)
        engine = _engine(_uri(self.file), self._busy_timeout_s)
        try:
            self._check_schema(engine)
            if self._version < SCHEMA_VERSION:
                self._upgrade(engine)
        except BaseException:
            engine.dispose()
            raise
        self._engine, self._pid = engine, os.getpid()
        return engine

    def _check_schema(self, engine: Engine) -> None:
        with engine.connect() as connection:
            known = connection.exec_driver_sql(
                "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?",
                (str(SchemaRow.__tablename__),)).first()
        if known is None:
            raise RegistryError(f"{self.file} is not an AsmEvo registry")
        with Session(engine) as session:
            versions = [row.version for row in session.exec(select(SchemaRow))]
        if len(versions) != 1 or not OLDEST <= versions[0] <= SCHEMA_VERSION:
            found = versions[0] if len(versions) == 1 else "unknown"
            raise RegistryError(f"registry {self.file} has schema version {found}, but this "
                                f"version of AsmEvo reads and writes version {SCHEMA_VERSION}")
        self._version = versions[0]

    def _upgrade(self, engine: Engine) -> None:
        try:
            with engine.execution_options(**{_WRITE: True}).begin() as connection:
                upgrade(connection)
        except DBAPIError as error:
            if self._reason(error.orig).endswith("is read-only"):
                raise RegistryError(
                    f"registry {self.file} has schema version {self._version}, which has to be "
                    f"brought to version {SCHEMA_VERSION} by someone who may write it; any "
                    "command of asmevo-registry does so") from error
            raise
        self._version = SCHEMA_VERSION

    @contextmanager
    def _explained(self, otherwise: str) -> Iterator[None]:
        try:
            yield
        except PoolTimeoutError as error:
            raise RegistryError(f"too many open connections to {self.file}") from error
        except DBAPIError as error:
            raise RegistryError(self._reason(error.orig)) from error
        except sqlite3.Error as error:
            raise RegistryError(self._reason(error)) from error
        except OSError as error:
            raise cannot("open registry database", self.file, error) from error
        except (SQLAlchemyError, ValueError, OverflowError, RecursionError) as error:
            # What a column cannot hold (a lone surrogate, an integer beyond 64 bits), or what a
            # tampered one should not (broken JSON, no date, an unknown status).
            reason = str(error).partition("\n")[0]
            raise RegistryError(f"registry database {self.file} {otherwise}: {reason}") from error

    def _reason(self, error: BaseException | None) -> str:
        name = str(getattr(error, "sqlite_errorname", ""))
        if name.startswith("SQLITE_BUSY"):
            return (f"registry database {self.file} stayed locked by another process for "
                    f"{self._busy_timeout_s:g} s")
        if name.startswith("SQLITE_CONSTRAINT"):
            return f"registry database {self.file} refuses the record: {error}"
        for prefix, reason in _REASONS.items():
            if name.startswith(prefix):
                return f"registry database {self.file} {reason}"
        return f"registry database {self.file} failed: {error}"


_REASONS = {
    "SQLITE_READONLY": "is read-only",
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_CORRUPT": "is corrupt",
    "SQLITE_NOTADB": "is corrupt: it is not an SQLite file",
    "SQLITE_CANTOPEN": "cannot be opened: its folder is missing, unreadable or read-only",
    # The index of the log, which whoever opens the database first has to make.
    "SQLITE_IOERR_SHMSIZE": "cannot be opened: the disk is full",
    "SQLITE_IOERR": "cannot be read or written: input/output error",
}


def _create(file: Path, busy_timeout_s: float) -> None:
    """Make an empty registry database appear complete, whoever else tries the same."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(exist_ok=False)
        try:
            with closing(sqlite3.connect(temporary)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
            engine = _engine(_uri(temporary), busy_timeout_s)
            try:
                with Session(engine.execution_options(**{_WRITE: True})) as session:
                    Table.metadata.create_all(session.connection())
                    session.add(SchemaRow(id=1, version=SCHEMA_VERSION))
                    session.commit()
            finally:
                engine.dispose()
            _link(temporary, file)
            sync_folder(file.parent)
        finally:
            for suffix in ("", "-wal", "-shm"):
                temporary.with_name(temporary.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise cannot("create a registry in", file.parent, error) from error


def _link(temporary: Path, file: Path) -> None:
    try:
        os.link(temporary, file)
    except FileExistsError:
        if not file.is_file():
            raise


def _uri(file: Path) -> str:
    quoted = urllib.parse.quote(str(file))
    effective = os.access in os.supports_effective_ids
    if all(os.access(p, os.W_OK, effective_ids=effective) for p in (file, file.parent)):
        return f"file:{quoted}?mode=rw"
    # Reading a WAL database needs its -shm file, which cannot be made in a read-only folder. With
    # no -wal beside it the main file is complete and nobody writes, which is what immutable says.
    if not file.with_name(file.name + "-wal").exists():
        return f"file:{quoted}?mode=ro&immutable=1"
    return f"file:{quoted}?mode=ro"


def _engine(uri: str, busy_timeout_s: float) -> Engine:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, timeout=busy_timeout_s, isolation_level=None,
                                     check_same_thread=False)
        connection.execute("PRAGMA foreign_keys = ON")
        # FULL also survives a power failure after a commit; NORMAL could lose it in WAL mode.
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool,
                           json_serializer=_dumps)

    # The driver's own transaction handling would start a transaction only at the first write;
    # here every one starts explicitly, a writing one with the lock.
    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        write = options.get(_WRITE, False)
        if write:
            level = "NORMAL" if options.get(_RELAXED, False) else "FULL"
            connection.exec_driver_sql(f"PRAGMA synchronous = {level}")
            driver = cast(sqlite3.Connection, connection.connection.driver_connection)
            take_turn(driver, busy_timeout_s)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def _dumps(value: Any) -> str:
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":"))
