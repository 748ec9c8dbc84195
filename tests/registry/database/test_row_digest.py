"""Every row has a digest of all its columns, whoever writes it and however."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlmodel import Session, col, create_engine, select

from asmevo.registry.database.models import (
    CandidateRow,
    CaptureRow,
    CodeObjectRow,
    DispatchRow,
    JudgementRow,
    RecoveredObjectRow,
    ReplacementRow,
    RunRow,
    SchemaRow,
    SearchEventRow,
    SecondTimingRow,
    SignatureRow,
    StatementRow,
    Table,
    TimingRow,
    VerdictRow,
)
from asmevo.registry.database.row_digest import row_digest

HASH = "ab" * 32
TIME = datetime(2026, 1, 2, 3, 4, 5, 60, tzinfo=UTC)
ROWS: tuple[Table, ...] = (
    SchemaRow(id=1, version=6, created=TIME),
    CodeObjectRow(sha256=HASH, isa="gfx942", size=3, kernels=["k"], source="s", created=TIME),
    RecoveredObjectRow(code_object_sha256=HASH, assembly_sha256=HASH, report={"a": 1},
                       toolchain={}, toolchain_sha256=HASH, created=TIME),
    DispatchRow(sha256=HASH, kernel="k", name="n", held_out=False, content_sha256=HASH,
                created=TIME),
    CaptureRow(sha256=HASH, original_sha256=HASH, kernel="k", name="n", reason="captured",
               held_out=True, size=4, content_sha256=HASH, created=TIME),
    RunRow(id="r", task="t", status="running", started=TIME, config_sha256=HASH, seed=1,
           package_version="0", toolchain={"a": "b"}, device="d", device_source="measured"),
    SearchEventRow(run_id="r", number=0, kind="k", data={"x": 0.1}, created=TIME),
    CandidateRow(id="c", run_id="r", original_sha256=HASH, kernel="k", object_sha256=HASH,
                 edits=[], rule="r", direction="d", rationale="ü", worker=0, status="verified",
                 created=TIME),
    VerdictRow(candidate_id="c", gate="G0", attempt=1, outcome="pass", code="ok", reason="",
               evidence={}),
    TimingRow(run_id="r", candidate_id="c", dispatch_sha256=HASH, samples=[1.5], source="modelled",
              device="d", warmup=0),
    ReplacementRow(original_sha256=HASH, kernel="k", candidate_id="c", object_sha256=HASH,
                   speedup=2, timing_source="modelled", device="d", evidence_complete=True,
                   created=TIME),
    SecondTimingRow(candidate_id="c", created=TIME),
    JudgementRow(candidate_id="c", data={"k": 1}),
    StatementRow(candidate_id="c", statement_sha256=HASH, created=TIME),
    SignatureRow(candidate_id="c", public_key=HASH, statement_sha256=HASH, signature=HASH * 2,
                 created=TIME),
)


@pytest.fixture
def session() -> Iterator[Session]:
    engine = create_engine("sqlite://")
    Table.metadata.create_all(engine)
    with Session(engine) as session:
        yield session


def copies() -> Iterator[Table]:
    return (type(row)(**row.model_dump()) for row in ROWS)


def columns(row: Table) -> list[str]:
    return [c.name for c in Table.metadata.tables[str(row.__tablename__)].columns]


def other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case datetime():
            return value + timedelta(microseconds=1)
        case list():
            return [*value, 1]
        case dict():
            return {**value, "other": None}
    return TIME


def test_rows_of_all_tables_are_tested() -> None:
    assert {str(row.__tablename__) for row in ROWS} == set(Table.metadata.tables)


def test_every_insert_and_update_sets_the_digest(session: Session) -> None:
    session.add_all(copies())
    session.commit()
    for row in ROWS:
        session.expire_all()
        [stored] = session.exec(select(type(row)))
        before = stored.digest
        assert len(before) == 64
        assert before == row_digest(stored), row
        name = next(n for n in ("toolchain", "created", "evidence", "data", "warmup")
                    if n in columns(row))  # those that no constraint knows
        setattr(stored, name, other(getattr(stored, name)))
        session.commit()
        assert stored.digest != before
        assert stored.digest == row_digest(stored), row


def test_every_column_counts_but_the_number_that_the_database_gives() -> None:
    for row in copies():
        before = row_digest(row)
        for name in columns(row):
            old = getattr(row, name)
            setattr(row, name, other(old))
            surrogate = name == "id" and not isinstance(row, RunRow | CandidateRow)
            assert (row_digest(row) == before) == (surrogate or name == "digest"), (row, name)
            setattr(row, name, old)


def test_a_change_past_the_session_shows(session: Session) -> None:
    session.add(CodeObjectRow(sha256=HASH, isa="gfx942", size=3, kernels=[], source="s"))
    session.commit()
    session.connection().exec_driver_sql("UPDATE code_object SET size = 4")
    session.expire_all()
    [row] = session.exec(select(CodeObjectRow).where(col(CodeObjectRow.size) == 4))
    assert row.digest != row_digest(row)


def test_what_is_digested_is_canonical_json() -> None:
    """Spelled out once, for whoever checks a registry with a program of their own."""
    row = ReplacementRow(
        id=7, original_sha256=HASH, kernel="k", candidate_id="ü", object_sha256=HASH, speedup=2,
        timing_source="modelled", device="d", evidence_complete=True,
        created=TIME.astimezone(timezone(timedelta(hours=9))))
    text = ('{"candidate_id":"\\u00fc","created":"2026-01-02T03:04:05.000060+00:00","device":"d",'
            f'"evidence_complete":true,"kernel":"k","object_sha256":"{HASH}",'
            f'"original_sha256":"{HASH}","speedup":2.0,"timing_source":"modelled"}}')
    assert json.loads(text)["candidate_id"] == "ü"
    assert row_digest(row) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(("column", "value"), [
    ("size", 3.5), ("size", "3"), ("source", b"s"), ("kernels", [float("nan")]),
    ("kernels", [b"k"]), ("speedup", "1_0"), ("speedup", float("inf")),
])
def test_what_a_column_cannot_hold_has_no_digest(column: str, value: object) -> None:
    """SQLite keeps any type in any column; a digest must not take one for another."""
    row = next(r for r in copies() if isinstance(
        r, ReplacementRow if column == "speedup" else CodeObjectRow))
    setattr(row, column, value)
    with pytest.raises(ValueError, match=r"not a number|table 'code_object'|JSON compliant"):
        row_digest(row)
