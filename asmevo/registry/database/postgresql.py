"""A registry's rows in a PostgreSQL database, for many machines that share one registry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy import inspect as inspect_database

from asmevo.registry.database.backend import RELAXED, WRITE, Backend, dumps
from asmevo.registry.database.layout import lay_out
from asmevo.registry.database.models import SchemaRow, Table
from asmevo.registry.errors import RegistryError, RegistryMissingError

WRITE_LOCK = 0x61736D65766F  # "asmevo"; advisory locks are numbers
"""The advisory lock that a writing transaction holds.

One writer at a time, as with SQLite, so that code which reads and then writes needs to know one
model only. The lock comes before the first statement, so in READ COMMITTED every statement sees
all that earlier writers committed. SERIALIZABLE would let some writers run side by side, but each
would have to be ready to run again (PostgreSQL manual, "Serializable Isolation Level").
"""


class PostgreSQL(Backend):
    """One database of a server; the registry's tables are in the schema it gives its user.

    Whatever `libpq` reads (PGPASSWORD, ~/.pgpass, sslmode and so on in the URL) works. A writer
    waits at most ``busy_timeout_s`` seconds for another; readers wait for nobody.
    """

    # Not also read-only: SQLAlchemy ends that by asking for READ WRITE, which a standby refuses
    # to begin and which overrides a database's default_transaction_read_only.
    read_options: Mapping[str, Any] = {"isolation_level": "REPEATABLE READ"}

    def __init__(self, url: URL, *, busy_timeout_s: float) -> None:
        self._url = url.set(drivername="postgresql+psycopg")
        self._busy_timeout_s = busy_timeout_s
        self.place = self.home = _place(url)

    def engine(self, *, create: bool) -> Engine:
        defaults = {"application_name": "asmevo", "connect_timeout": 10}
        try:
            engine = create_engine(
                self._url, json_serializer=dumps,
                # A server may restart during a search of days.
                pool_pre_ping=True,
                connect_args={k: v for k, v in defaults.items() if k not in self._url.query})
        except ImportError:
            raise RegistryError("a PostgreSQL registry needs the package psycopg: "
                                "pip install 'asmevo[postgresql]'") from None
        wait_ms = max(1, round(self._busy_timeout_s * 1000))  # 0 would be no limit

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            options = connection.get_execution_options()
            if options.get(WRITE, False):
                relaxed = "SET LOCAL synchronous_commit = off;" if options.get(RELAXED) else ""
                connection.exec_driver_sql(f"{relaxed} SET LOCAL lock_timeout = {wait_ms}; "
                                           f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")

        return engine

    def refuse_empty(self) -> NoReturn:
        raise RegistryMissingError(f"no registry at {self.home}")

    def lay_out(self, connection: Connection) -> None:
        inspector = inspect_database(connection)
        if inspector.has_table(str(SchemaRow.__tablename__)):
            return  # another process was first
        foreign = set(Table.metadata.tables) & set(inspector.get_table_names())
        if foreign:
            raise RegistryError(f"{self.place} is not an AsmEvo registry, and it has a table "
                                f"'{min(foreign)}' already, which a registry needs")
        lay_out(connection)

    def explain(self, error: BaseException) -> str:
        state = getattr(error, "sqlstate", None) or ""
        message = _message(error)
        if state == _LOCKED:
            return f"stayed locked by another process for {self._busy_timeout_s:g} s"
        for prefix, reason in _REASONS.items():
            if state.startswith(prefix):
                return reason.format(message)
        if not state:
            # libpq reports a failed connection by its text alone.
            for pattern, reason in _UNREACHABLE.items():
                if found := re.search(pattern, message):
                    return reason.format(*found.groups())
            if _is_data_error(error):
                return f"refuses the record: {message}"
        return f"failed: {message}"

    def forbids_writing(self, error: BaseException) -> bool:
        return getattr(error, "sqlstate", None) in (_READ_ONLY, _NO_PRIVILEGE)


# Appendix A of the PostgreSQL manual, "PostgreSQL Error Codes".
_LOCKED, _READ_ONLY, _NO_PRIVILEGE = "55P03", "25006", "42501"
_REASONS: Mapping[str, str] = {
    "53100": "cannot grow: the server's disk is full",
    "53200": "failed: the server is out of memory",
    "53300": "has no connection left",
    "57P": "is shutting down or starting",
    "08": "closed the connection",
    _READ_ONLY: "is read-only",
    _NO_PRIVILEGE: "does not allow that: {}",
    "22": "refuses the record: {}",
    "23": "refuses the record: {}",
    "XX001": "is corrupt: {}",
    "XX002": "is corrupt: {}",
}

_UNREACHABLE: Mapping[str, str] = {
    r"password authentication failed for user (\"[^\"]*\")": "refuses the password of user {}",
    r"no password supplied": "asks for a password, and none is given",
    r"role (\"[^\"]*\") does not exist": "has no user {}",
    r"database (\"[^\"]*\") does not exist": "cannot be opened: the server has no database {}",
    r"no pg_hba.conf entry": "does not let this user in from this machine",
    r"too many clients|connection slots are reserved": "has no connection left",
    r"the database system is (\w+ ?\w+)": "cannot be used now: the server is {}",
    r"Connection refused|No such file or directory":
        "cannot be reached: no server listens there",
    r"not known|not translate host|resolve host|No address": "cannot be reached: unknown host",
    r"timeout expired|timed out|No route to host|unreachable":
        "cannot be reached: no answer in time",
    r"closed the connection|connection is lost|terminating connection": "closed the connection",
}


def _place(url: URL) -> str:
    """The database without its password, which may also be among the options of the URL."""
    user = f"{url.username}@" if url.username else ""
    host = url.host or url.query.get("host") or ""
    port = url.port or url.query.get("port") or ""
    return f"postgresql://{user}{host}{':' if port else ''}{port}/{url.database or ''}"


def _message(error: BaseException) -> str:
    """What the server says in one line, without the record (DETAIL) and the statement."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    lines = str(primary or error).strip().splitlines() or [type(error).__name__]
    return lines[0]


def _is_data_error(error: BaseException) -> bool:
    return any(kind.__name__ in ("DataError", "IntegrityError") for kind in type(error).__mro__)
