"""A whole registry, looked at from front to end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from asmevo.registry.audit.contents import DERIVED, Derived, audit_content, audit_toolchain
from asmevo.registry.audit.finding import Finding, FindingCode, shown
from asmevo.registry.audit.references import audit_references, parents_end
from asmevo.registry.audit.replacements import audit_replacements
from asmevo.registry.audit.rows import (
    UNREADABLE,
    audit_rows,
    audit_schema,
    count_rows,
    read_rows,
    tables,
)
from asmevo.registry.audit.stored import Stored, read_stored
from asmevo.registry.database.models import SchemaRow
from asmevo.registry.errors import RegistryError, RegistryMissingError
from asmevo.registry.rows.named_blobs import BLOBS, blobs_of

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry
    from asmevo.registry.signing.trust import TrustList


@dataclass(slots=True)
class Audit:
    """What was looked at and what was found.

    ``size`` is of the contents of all blobs in bytes. ``garbage`` are blobs that nothing names:
    they do no harm, and `gc` removes them. Both are empty where blobs were left out.
    """

    findings: list[Finding] = field(default_factory=list)
    garbage: list[str] = field(default_factory=list)
    rows: int = 0
    blobs: int = 0
    size: int = 0
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def verify(registry: Registry, *, trust: TrustList | None = None, quick: bool = False,
           threads: int | None = None) -> Audit:
    """Check all rows, what they say of one another, statements, signatures and, unless ``quick``,
    all blobs and every column that follows from them.

    Others may go on writing; what is checked is the state of the rows when this starts. Raises
    `RegistryError` where there is no registry, or one that cannot be opened.
    """
    started = time.monotonic()
    audit = Audit()
    try:
        with registry.database.read() as session:
            audit.findings += _guarded(_damage(session), "database")
            incomplete = list(_guarded(audit_schema(session), "schema"))
            audit.findings += incomplete
            if not incomplete:
                _check(session, registry, audit, trust, quick=quick, threads=threads)
    except RegistryMissingError:
        raise
    except RegistryError as error:
        if not audit.rows:
            raise
        audit.findings.append(Finding(FindingCode.DATABASE, "database", str(error)))
    audit.findings = sorted(set(audit.findings))
    audit.seconds = time.monotonic() - started
    return audit


def _check(session: Session, registry: Registry, audit: Audit, trust: TrustList | None, *,
           quick: bool, threads: int | None) -> None:
    audit.rows = count_rows(session)
    audit.findings += _guarded(audit_rows(session), "rows")
    audit.findings += _guarded(_schema_row(session), "schema")
    audit.findings += _guarded(parents_end(session), "lineage")
    audit.findings += _guarded(audit_references(session), "references")
    if not quick:
        _check_blobs(session, registry, audit, threads)
    audit.findings += _guarded(audit_replacements(session, registry.blobs, trust), "replacements")


def _check_blobs(session: Session, registry: Registry, audit: Audit,
                 threads: int | None) -> None:
    kinds: dict[str, frozenset[str]] = {}
    named: dict[str, str] = {}
    for sha256, table, subject in _named(session):
        named.setdefault(sha256, subject)
        if table in DERIVED and table not in kinds.get(sha256, ()):
            kinds[sha256] = kinds.get(sha256, frozenset()) | {table}
    present = {blob.sha256 for blob in registry.blobs.list() if blob.sha256 is not None}
    stored = read_stored(registry.blobs, sorted(present), kinds, threads=threads)
    audit.blobs, audit.size = stored.blobs, stored.size
    audit.findings += stored.findings
    for (_, table), said in sorted(stored.derived.items()):
        for sha256 in said.blobs:
            named.setdefault(sha256, f"a {table}")
    audit.garbage = sorted(present - set(named))
    missing = set(named) - present
    if missing:
        # `gc` may have removed rows and then their blobs since this began to read.
        with registry.database.read() as later:
            rows = {sha256 for sha256, _, _ in _named(later)}
        still = rows.union(*(said.blobs for (sha256, _), said in stored.derived.items()
                             if sha256 in rows))
        missing &= still
    for sha256 in sorted(missing):
        audit.findings.append(Finding(FindingCode.BLOB_MISSING, f"blob {shown(sha256)}",
                                      f"it is not there, but {named[sha256]} names it"))
    audit.findings += _guarded(_contents(session, stored), "contents")


def _named(session: Session) -> Iterator[tuple[str, str, str]]:
    """The blobs that rows name, by which table, and by what in words."""
    for table in tables():
        for column in BLOBS.get(table.name, ()):
            [key] = table.primary_key.columns
            for sha256, own in session.connection().execute(
                    sa.select(table.c[column], key).where(table.c[column].is_not(None))):
                yield str(sha256), table.name, f"{table.name} {shown(own)}"


def _contents(session: Session, stored: Stored) -> Iterator[Finding]:
    for table in tables():
        if table.name not in DERIVED:
            continue
        for row in read_rows(session, table):
            if isinstance(row, Finding):
                continue  # found when rows were read
            for sha256 in blobs_of(table.name, row):
                said = stored.derived.get((sha256, table.name), Derived())
                yield from audit_content(table, row, said)
            if table.name == "recovered_object":
                yield from audit_toolchain(row)


def _damage(session: Session) -> Iterator[Finding]:
    connection = session.connection()
    if connection.dialect.name != "sqlite":
        return
    for [found] in connection.exec_driver_sql("PRAGMA integrity_check(20)").all():
        if found != "ok":
            yield Finding(FindingCode.DATABASE, "database", shown(found))


def _schema_row(session: Session) -> Iterator[Finding]:
    numbers = session.connection().execute(sa.select(SchemaRow.id)).scalars().all()  # type: ignore[call-overload]
    if list(numbers) != [1]:
        yield Finding(FindingCode.SCHEMA, "registry_schema", "it is not one row with number 1")


def _guarded(findings: Iterable[Finding], subject: str) -> Iterator[Finding]:
    """What cannot be checked because of what the rows hold is a finding as well."""
    try:
        yield from findings
    except DBAPIError as error:
        yield Finding(FindingCode.DATABASE, subject, shown(str(error.orig)))
    except (RegistryError, KeyError, *UNREADABLE) as error:
        reason = str(error).partition("\n")[0]
        yield Finding(FindingCode.ROW_UNREADABLE, subject,
                      f"these cannot all be checked: {shown(reason)}")
