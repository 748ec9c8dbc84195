"""Nothing in a registry changes without `verify` telling of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from asmevo.registry.audit.finding import FindingCode
from asmevo.registry.audit.rows import tables
from asmevo.registry.audit.verify import verify
from asmevo.registry.database.models import UtcDateTime
from asmevo.registry.database.row_digest import COLUMN, values_digest
from asmevo.registry.errors import RegistryError
from asmevo.registry.registry import Registry
from asmevo.registry.rows.named_blobs import BLOBS
from tests.registry.audit.conftest import Copy

NOT_NOTICED = {
    "recovered_object.id", "search_event.id", "verdict.id", "timing.id", "replacement.id",
    "signature.id",
}
"""Numbers that a database gives out: they differ from one registry to another and say nothing."""

NOT_OPENED = {"registry_schema.version"}
"""A registry of another version is not opened at all, and says so."""


def blobs(copy: Copy) -> list[Path]:
    """The files of all blobs."""
    return sorted((copy.path / "blobs").glob("*/*.zst"))


def test_what_nobody_touched(copy: Copy) -> None:
    audit = copy.verify(trust=copy.trust)
    assert audit.findings == []
    [superseded] = audit.garbage  # what was stated before the second timing
    assert superseded not in {row[0] for row in copy.sql("SELECT statement_sha256 FROM statement")}
    count = sum(copy.sql(f"SELECT count(*) FROM {t.name}")[0][0] for t in tables())
    assert (audit.rows, audit.blobs) == (count, len(blobs(copy)))
    assert audit.size > 0
    assert copy.verify(quick=True).findings == []
    for table in tables():
        assert copy.sql(f"SELECT count(*) FROM {table.name}")[0][0], f"{table.name} is not tried"


def columns() -> list[Any]:
    return [pytest.param(table, column, id=f"{table.name}.{column.name}")
            for table in tables() for column in table.columns
            if f"{table.name}.{column.name}" not in NOT_NOTICED]


@pytest.mark.parametrize(("table", "column"), columns())
def test_every_column(shared: Copy, table: sa.Table, column: sa.Column[Any]) -> None:
    """Every row whose value is another one is named."""
    values = shared.sql(f"SELECT rowid, {column.name} FROM {table.name}")
    with shared.kept(table.name):
        for number, value in values:
            shared.sql(f"UPDATE {table.name} SET {column.name} = ? WHERE rowid = ?",
                       other(column, value, number), number)
        if f"{table.name}.{column.name}" in NOT_OPENED:
            with pytest.raises(RegistryError, match="schema version"):
                verify(Registry(shared.path), quick=True)
            return
        found = [f for f in shared.verify(quick=True).findings if f.subject.startswith(table.name)]
    named = {f.subject for f in found if f.code in (
        FindingCode.ROW_ALTERED, FindingCode.ROW_UNREADABLE, FindingCode.SCHEMA)}
    assert len(named) == len(values)


def other(column: sa.Column[Any], value: Any, number: int) -> Any:
    """Another value of the same kind, not the same for every row."""
    kind = column.type
    if isinstance(kind, sa.Boolean):
        return 1 - value
    if isinstance(kind, sa.JSON):
        held = json.loads(value)
        return json.dumps([*held, 1.0] if isinstance(held, list) else {**held, "more": 1})
    if isinstance(kind, UtcDateTime):
        return f"2026-01-02 03:04:05.{number:06}"
    if isinstance(kind, sa.Integer | sa.Float):
        return (value or 0) + 1000 + number
    return f"{value}{number}"


@pytest.mark.parametrize("column", ["run.started", "run.toolchain", "candidate.edits",
                                    "search_event.data", "timing.samples", "capture.size",
                                    "judgement.data", "second_timing.created"])
def test_values_that_cannot_be_read(shared: Copy, column: str) -> None:
    """A finding like any other, which keeps nothing else from being found."""
    table, name = column.split(".")
    original = shared.populated.original.sha256
    with shared.kept(table), shared.kept("code_object"):
        shared.sql("UPDATE code_object SET source = 'elsewhere' WHERE sha256 = ?", original)
        for value in ("not json", "[", b"\xff\xfe", 7, "2026-13-45 99:99:99", "[" * 100_000):
            shared.sql(f"UPDATE {table} SET {name} = ?", value)
            findings = shared.verify(quick=True).findings
            assert any(f.subject.startswith(f"{table} ") for f in findings)
            assert (FindingCode.ROW_ALTERED, f"code_object {original}") in {
                (f.code, f.subject) for f in findings}


EVIDENCE = {
    "code_object": "sha256 != 'x'", "dispatch": "name = 'm4'", "run": "1", "judgement": "1",
    "capture": "reason = 'counterexample'", "candidate": "id != 'rejected'",
    "search_event": "1", "replacement": "1", "second_timing": "1", "statement": "1",
    "timing": "1", "verdict": "candidate_id != 'rejected'", "signature": "1",
}
"""By table which rows are evidence of a replacement, each of them missed when it is gone."""

NOT_MISSED = {
    "registry_schema": "without it the registry is not opened, see test_no_version",
    "recovered_object": "recovery gives it again, nothing is derived from the stored one",
}


def test_every_table_is_tried() -> None:
    assert {t.name for t in tables()} == EVIDENCE.keys() | NOT_MISSED.keys()


@pytest.mark.parametrize("table", EVIDENCE)
def test_every_row_of_the_evidence(shared: Copy, table: str) -> None:
    for [number] in shared.sql(f"SELECT rowid FROM {table} WHERE {EVIDENCE[table]}"):
        with shared.kept(table):
            shared.sql(f"DELETE FROM {table} WHERE rowid = ?", number)
            audit = shared.verify(quick=True, trust=shared.trust)
        assert not audit.clean, f"row {number}"


def test_no_version(copy: Copy) -> None:
    copy.sql("DELETE FROM registry_schema")
    with pytest.raises(RegistryError, match="schema version unknown"):
        verify(Registry(copy.path))


@pytest.mark.parametrize("damage", ["flipped", "shorter", "empty", "gone"])
def test_every_blob(copy: Copy, damage: str) -> None:
    [garbage] = copy.verify().garbage
    for path in blobs(copy):
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes({
            "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1:],
            "shorter": data[:-1]}.get(damage, b""))
    damaged = {path.stem for path in blobs(copy)}
    if damage == "gone":
        for path in blobs(copy):
            path.unlink()
        damaged -= {garbage}
        documents = {row[0] for name in ("dispatch", "capture")
                     for row in copy.sql(f"SELECT content_sha256 FROM {name}")}
        assert documents < damaged  # so that nobody knows what these name
        damaged &= documents | {row[0] for table, columns in BLOBS.items() for column in columns
                                for row in copy.sql(f"SELECT {column} FROM {table}")}
    findings = copy.verify().findings
    assert {f"blob {sha256}" for sha256 in damaged} <= {f.subject for f in findings}


FORGEABLE = {
    **dict.fromkeys((
        "code_object.source", "code_object.created", "dispatch.created", "capture.created",
        "capture.reason", "capture.held_out", "capture.dispatch_sha256",
        "recovered_object.created", "search_event.created", "statement.created",
        "signature.created"), "a remark on when, why and from where"),
    **dict.fromkeys(("recovered_object.report", "recovered_object.assembly_sha256"),
                    "recovery gives it again"),
    "search_event.data": "the log of a search, of which only counterexamples are evidence",
    **dict.fromkeys(("run.status", "run.finished"), "they change while the run goes on"),
}
"""Columns of evidence that nothing but the digest of their row speaks for, and why."""


@pytest.mark.parametrize(("table", "column"), [
    pytest.param(table, column, id=f"{table.name}.{column.name}")
    for table in tables() for column in table.columns
    if column.name != COLUMN and table.name != "registry_schema"
    and f"{table.name}.{column.name}" not in NOT_NOTICED | FORGEABLE.keys()])
def test_whoever_recomputes_digests(shared: Copy, table: sa.Table, column: sa.Column[Any]) -> None:
    """He is found by what the blobs, the statements and the other rows say."""
    [number, value] = shared.sql(
        f"SELECT rowid, {column.name} FROM {table.name} WHERE {EVIDENCE.get(table.name, '1')} "
        f"ORDER BY {column.name} IS NULL, rowid LIMIT 1")[0]
    with shared.kept(table.name):
        shared.sql(f"UPDATE {table.name} SET {column.name} = ? WHERE rowid = ?",
                   other(column, value, number), number)
        with shared.registry.database.read() as session:
            [row] = session.connection().execute(
                table.select().where(sa.text("rowid = :n")), {"n": number}).mappings()
        shared.sql(f"UPDATE {table.name} SET digest = ? WHERE rowid = ?",
                   values_digest(table, dict(row)), number)
        audit = shared.verify()
    assert audit.findings
    assert FindingCode.ROW_ALTERED not in {f.code for f in audit.findings}
