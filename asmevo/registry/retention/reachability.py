"""Which blobs a registry needs: what its rows name, and what the documents among those name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

import sqlalchemy as sa
from sqlmodel import Session

from asmevo.registry.blobs.store import Blobs
from asmevo.registry.database.models import CaptureRow, DispatchRow, Table
from asmevo.registry.errors import BlobError, RegistryError

_DOCUMENTS = ((DispatchRow, "dispatch"), (CaptureRow, "capture"))
"""Rows whose ``content_sha256`` names a JSON document that names other blobs."""

_HASH = re.compile(rb'"([0-9a-f]{64})"')


class References:
    """The hashes that something in the registry names, more rather than fewer.

    Every column whose name ends in ``sha256`` counts, and every string in a document that looks
    like a hash, so that a table or a key which is added later is not forgotten. Documents are read
    once, for their content cannot change.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._named: dict[str, frozenset[str]] = {}

    def all(self, session: Session,
            without: Mapping[str, Collection[str]] = MappingProxyType({})) -> set[str]:
        """Every hash that is named now; ``without`` some rows, by table and key.

        Raises `RegistryError` where a document is unreadable.
        """
        found: set[str] = set()
        for column in _columns():
            left_out = without.get(column.table.name)
            if not left_out:
                found.update(session.connection().execute(sa.select(column)).scalars())
                continue
            [key] = column.table.primary_key
            found.update(value for value, own in session.connection().execute(
                sa.select(column, key)) if own not in left_out)
        for named in self._documents(session, without.get("capture", ())):
            found |= named
        return found

    def among(self, session: Session, wanted: Collection[str]) -> set[str]:
        """Those of some hashes that are named now."""
        found: set[str] = set()
        for column in _columns():
            found.update(session.connection().execute(
                sa.select(column).where(column.in_(wanted))).scalars())
        for named in self._documents(session):
            found |= named.intersection(wanted)
        return found

    def of_document(self, sha256: str, what: str) -> frozenset[str]:
        """What a document names. Raises `RegistryError` where it cannot be read."""
        if sha256 not in self._named:
            try:
                data = self._blobs.get(sha256)
            except BlobError as error:
                raise RegistryError(f"what a {what} needs is not known, so nothing can be removed: "
                                    f"{error}") from error
            self._named[sha256] = frozenset(h.decode() for h in _HASH.findall(data))
        return self._named[sha256]

    def _documents(self, session: Session,
                   without: Collection[str] = ()) -> Iterator[frozenset[str]]:
        for table, what in _DOCUMENTS:
            columns = sa.inspect(table).local_table.c
            for key, sha256 in session.connection().execute(
                    sa.select(columns.sha256, columns.content_sha256)):
                if key not in without:
                    yield self.of_document(sha256, what)


def _columns() -> Iterator[sa.Column[str]]:
    for table in Table.metadata.sorted_tables:
        for column in table.columns:
            if column.name.endswith("sha256"):
                yield column


def referrers(table: str) -> Iterator[sa.Column[str]]:
    """The columns of any table that refer to the rows of ``table``."""
    for other in Table.metadata.sorted_tables:
        for key in other.foreign_keys:
            if key.column.table.name == table:
                yield key.parent
