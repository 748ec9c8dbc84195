"""A registry's rows in an SQLite file: the default."""

from __future__ import annotations

import os
import secrets
import sqlite3
import urllib.parse
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event

from asmevo.durable import make_folder, sync_folder
from asmevo.registry.database.backend import RELAXED, WRITE, Backend, dumps, loads
from asmevo.registry.database.layout import lay_out
from asmevo.registry.database.turns import take_turn
from asmevo.registry.errors import RegistryError, RegistryMissingError, cannot

DATABASE_NAME = "asmevo.db"


def is_utf8(path: Path) -> bool:
    """Whether a path, of which Linux asks nothing, is text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def file_of(url: URL) -> Path:
    """The file of an ``sqlite:///`` URL. Raises `RegistryError`."""
    name = url.database
    if not name or name == ":memory:" or name.startswith("file:") or url.query:
        raise RegistryError("the registry's sqlite url must name a plain file")
    return Path(name).absolute()


class SQLite(Backend):
    """One file in WAL mode with foreign keys enforced.

    A file that this process may not write is opened read-only. A writer waits at most
    ``busy_timeout_s`` seconds for another; readers wait for nobody.
    """

    def __init__(self, file: Path, *, busy_timeout_s: float) -> None:
        self._file = file
        self._busy_timeout_s = busy_timeout_s
        self.place = str(file)
        self.home = str(file.parent)
        self.folder = file.parent

    def engine(self, *, create: bool) -> Engine:
        if not is_utf8(self._file):
            raise RegistryError(f"registry database {self._file} cannot be opened: SQLite takes "
                                "paths in UTF-8 only")
        try:
            if not self._file.exists():
                if not create:
                    raise RegistryMissingError(f"no registry at {self.home}")
                self._create()
        except OSError as error:
            raise cannot("open registry database", self._file, error) from error
        return _engine(_uri(self._file), self._busy_timeout_s)

    def refuse_empty(self) -> NoReturn:
        raise RegistryError(f"{self.place} is not an AsmEvo registry")

    def lay_out(self, connection: Connection) -> None:
        self.refuse_empty()  # a registry's file is made with its tables, so this is another's

    def explain(self, error: BaseException) -> str:
        name = str(getattr(error, "sqlite_errorname", ""))
        if name.startswith("SQLITE_BUSY"):
            return f"stayed locked by another process for {self._busy_timeout_s:g} s"
        if name.startswith("SQLITE_CONSTRAINT"):
            return f"refuses the record: {error}"
        for prefix, reason in _REASONS.items():
            if name.startswith(prefix):
                return reason
        return f"failed: {error}"

    def forbids_writing(self, error: BaseException) -> bool:
        return str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_READONLY")

    def damage(self, connection: Connection) -> str | None:
        found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
        return None if found == "ok" else found

    def _create(self) -> None:
        """Make an empty registry appear complete, whoever else tries the same."""
        file = self._file
        temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}.tmp")
        try:
            make_folder(file.parent)
            temporary.touch(exist_ok=False)
            try:
                engine = _engine(_uri(temporary), self._busy_timeout_s)
                try:
                    with engine.execution_options(**{WRITE: True}).begin() as connection:
                        lay_out(connection)
                finally:
                    engine.dispose()
                # Last, for a log is copied into the file when it is closed, and on a full disk
                # that fails silently: the file alone would be half a registry.
                with closing(sqlite3.connect(temporary)) as connection:
                    connection.execute("PRAGMA journal_mode = WAL")
                _link(temporary, file)
                sync_folder(file.parent)
            finally:
                for suffix in ("", "-journal", "-wal", "-shm"):
                    temporary.with_name(temporary.name + suffix).unlink(missing_ok=True)
        except sqlite3.Error as error:
            raise RegistryError(
                f"registry database {self.place} {self.explain(error)}") from error
        except OSError as error:
            raise cannot("create a registry in", file.parent, error) from error


_REASONS: Mapping[str, str] = {
    "SQLITE_READONLY": "is read-only",
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_CORRUPT": "is corrupt",
    "SQLITE_NOTADB": "is corrupt: it is not an SQLite file",
    "SQLITE_CANTOPEN": "cannot be opened: its folder is missing, unreadable or read-only",
    # The index of the log, which whoever opens the database first has to make.
    "SQLITE_IOERR_SHMSIZE": "cannot be opened: the disk is full",
    "SQLITE_IOERR": "cannot be read or written: input/output error",
}


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
                           json_serializer=dumps, json_deserializer=loads)

    # The driver's own transaction handling would start a transaction only at the first write;
    # here every one starts explicitly, a writing one with the lock.
    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        write = options.get(WRITE, False)
        if write:
            level = "NORMAL" if options.get(RELAXED, False) else "FULL"
            connection.exec_driver_sql(f"PRAGMA synchronous = {level}")
            take_turn(connection, busy_timeout_s)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine
