"""The rows of a shipment in a temporary database, where they are checked before they go on."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlmodel import Session

from asmevo.registry.audit.contents import audit_content, audit_toolchain, derived, finding_of
from asmevo.registry.audit.finding import Finding
from asmevo.registry.audit.references import audit_references, parents_end
from asmevo.registry.audit.replacements import audit_replacements
from asmevo.registry.audit.rows import Row, values_of
from asmevo.registry.database.backend import dumps
from asmevo.registry.database.models import Table
from asmevo.registry.errors import BlobError, RegistryError
from asmevo.registry.parcel.coding import decode, encode
from asmevo.registry.parcel.errors import ParcelError, ParcelFault
from asmevo.registry.rows.named_blobs import BLOBS, DOCUMENTS, blobs_in, blobs_of
from asmevo.registry.signing.statement import Blobs

TABLES = tuple(t for t in Table.metadata.sorted_tables if t.name != "registry_schema")
"""What is carried, each table after those that it refers to."""

MOST_BLOBS = 1 << 18
_BATCH = 500


class Stage:
    """Rows in the order in which they were added, and the blobs that go with them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.blobs: list[str] = []
        self._pending: list[dict[str, Any]] = []
        self._table = TABLES[0]

    def add(self, table: sa.Table, values: Mapping[str, Any]) -> None:
        """Add a row, by its values without the number that a database gives out itself."""
        if table is not self._table or len(self._pending) >= _BATCH:
            self.flush()
            self._table = table
        self._pending.append(dict(values))

    def add_line(self, line: bytes) -> None:
        """Add what `lines` gave. Raises `ParcelError`."""
        try:
            name, content = json.loads(line, parse_constant=_no_number)
            if name == _BLOBS:
                if not isinstance(content, str) or content <= (self.blobs or [""])[-1]:
                    raise ValueError("blobs are not in order")
                self.blobs.append(content)
            else:
                table = _BY_NAME[name]
                self.add(table, decode(table, content))
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise ParcelError(ParcelFault.UNSOUND, f"a record is malformed: {reason}") from None
        if len(self.blobs) > MOST_BLOBS:
            raise ParcelError(ParcelFault.TOO_LARGE, f"there are more than {MOST_BLOBS} blobs")

    def flush(self) -> None:
        """Write what was added. Raises `ParcelError`."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        try:
            self.session.connection().execute(self._table.insert(), pending)
        except IntegrityError as error:
            raise ParcelError(ParcelFault.UNSOUND, f"a {self._table.name} contradicts another "
                              f"record: {error.orig}") from None
        except (SQLAlchemyError, ValueError, OverflowError) as error:
            reason = str(error).partition("\n")[0]
            raise ParcelError(ParcelFault.UNSOUND,
                              f"a {self._table.name} cannot be held: {reason}") from None

    def rows(self, table: sa.Table) -> Iterator[Row]:
        """The rows of a table, in the order in which they were added."""
        yield from values_of(self.session, sa.select(table).order_by(sa.text("rowid")))

    def lines(self) -> Iterator[bytes]:
        """All of it as text, one record a line, the same for the same content."""
        self.flush()
        for table in TABLES:
            for row in self.rows(table):
                yield encode(table, row)
        for sha256 in self.blobs:
            yield dumps([_BLOBS, sha256]).encode()

    def count(self) -> dict[str, int]:
        """How many rows there are, by table; those without any are left out."""
        self.flush()
        connection = self.session.connection()
        counts = {table.name: int(connection.execute(
            sa.select(sa.func.count()).select_from(table)).scalar_one()) for table in TABLES}
        return {name: count for name, count in counts.items() if count}

    def collect(self, blobs: Blobs) -> None:
        """List the blobs that the rows need. Raises `RegistryError`."""
        self.flush()
        self.blobs = sorted(needed(self, blobs))

    def check(self, blobs: Blobs) -> None:
        """Raise `ParcelError` unless this is whole and true: `verify` would find nothing."""
        self.flush()
        found = next(self._findings(blobs), None)
        if found is not None:
            raise ParcelError(ParcelFault.UNSOUND,
                              f"{found.subject}: {found.reason} ({found.code})")
        if set(self.blobs) != needed(self, blobs):
            raise ParcelError(ParcelFault.UNSOUND,
                              "its list of blobs is not that of what its records name")

    def _findings(self, blobs: Blobs) -> Iterator[Finding]:
        yield from parents_end(self.session)
        yield from audit_references(self.session)
        for table in TABLES:
            if table.name not in BLOBS:
                continue
            for row in self.rows(table):
                for sha256 in blobs_of(table.name, row):
                    try:
                        said = derived(table.name, blobs.get(sha256))
                    except BlobError as error:
                        yield finding_of(error, f"blob {sha256}")
                    else:
                        yield from audit_content(table, row, said)
                if table.name == "recovered_object":
                    yield from audit_toolchain(row)
        yield from audit_replacements(self.session, blobs)


@contextmanager
def new_stage() -> Iterator[Stage]:
    """An empty stage, which is gone at the end. Raises `RegistryError`."""
    with tempfile.TemporaryDirectory(prefix="asmevo-parcel-") as folder:
        engine = sa.create_engine(f"sqlite:///{Path(folder) / 'stage.db'}", json_serializer=dumps)
        try:
            with engine.connect() as connection:
                for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = ON"):
                    connection.exec_driver_sql(f"PRAGMA {pragma}")
                Table.metadata.create_all(connection)
                with Session(connection) as session:
                    yield Stage(session)
        finally:
            engine.dispose()


def needed(stage: Stage, blobs: Blobs) -> set[str]:
    """The blobs that the rows of a stage name, and those that these name."""
    found: set[str] = set()
    for table in TABLES:
        for row in stage.rows(table) if table.name in BLOBS else ():
            for sha256 in blobs_of(table.name, row):
                found.add(sha256)
                if table.name in DOCUMENTS:
                    try:
                        found |= blobs_in(table.name, blobs.get(sha256))
                    except RegistryError as error:
                        raise ParcelError(ParcelFault.UNSOUND, f"blob {sha256}: {error}") from None
    return found


def _no_number(text: str) -> object:
    raise ValueError(f"{text} is no number")


_BY_NAME = {table.name: table for table in TABLES}
_BLOBS = "blob"
