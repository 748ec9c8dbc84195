"""The tables of the registry. These models are the only definition of its schema."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    Index,
    Integer,
    MetaData,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

from asmevo.registry.database.row_digest import keep_digests

SCHEMA_VERSION = 6
"""Raised with every change of a table below; a revision in `migrations` brings older ones here."""


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time, in UTC; SQLite itself would drop the time zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        convert = super().result_processor(dialect, coltype)

        def checked(value: Any) -> Any:
            try:
                return value if convert is None else convert(value)
            except TypeError as error:  # SQLite holds a value of any type in any column
                raise ValueError(f"{value!r} is no point in time") from error

        return checked


# PostgreSQL's INTEGER has 32 bits; SQLite has one kind of integer, of up to 64.
WIDE = BigInteger().with_variant(Integer, "sqlite")


class Table(SQLModel):
    """Base of all tables: metadata of their own, and constraint names that migrations can use.

    ``digest`` is `row_digest`, kept up to date with every insert and update of a session; a row
    that was written past it has none, or a wrong one.
    """

    metadata: ClassVar[MetaData] = MetaData(naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    })

    digest: str = Field(default="", max_length=64, sa_column_kwargs={"server_default": text("''")})


keep_digests(Table)


class SchemaRow(Table, table=True):
    """One row: the version of the schema that made this database."""

    __tablename__ = "registry_schema"

    id: int = Field(primary_key=True)
    version: int
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class CodeObjectRow(Table, table=True):
    """A code object, original or built from a candidate. Its bytes are the blob ``sha256``."""

    __tablename__ = "code_object"

    sha256: str = Field(primary_key=True, max_length=64)
    isa: str
    size: int = Field(sa_type=WIDE)
    kernels: list[str] = Field(sa_type=JSON)
    source: str
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class RecoveredObjectRow(Table, table=True):
    """Recovered assembly of a code object, one row for each text and toolchain."""

    __tablename__ = "recovered_object"
    __table_args__ = (
        UniqueConstraint("code_object_sha256", "assembly_sha256", "toolchain_sha256",
                         name="uq_recovered_object_version"),
    )

    id: int | None = Field(default=None, primary_key=True)
    code_object_sha256: str = Field(foreign_key="code_object.sha256", index=True, max_length=64)
    assembly_sha256: str = Field(max_length=64)
    report: dict[str, Any] = Field(sa_type=JSON)
    toolchain: dict[str, Any] = Field(sa_type=JSON)
    toolchain_sha256: str = Field(max_length=64)
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class DispatchRow(Table, table=True):
    """A dispatch. Blob ``content_sha256`` describes it and names the blobs of its regions.

    `Dispatch.sha256` does not cover ``name`` and ``held_out``; the last recorded ones are kept.
    """

    __tablename__ = "dispatch"

    sha256: str = Field(primary_key=True, max_length=64)
    kernel: str = Field(index=True)
    name: str
    held_out: bool
    content_sha256: str = Field(max_length=64)
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class CaptureRow(Table, table=True):
    """A captured dispatch of one kernel. Blob ``content_sha256`` is its document.

    ``sha256`` is the capture's identity, which its name does not count for. ``dispatch_sha256`` is
    the `Dispatch` that it was recorded of, where it was one.
    """

    __tablename__ = "capture"
    __table_args__ = (
        CheckConstraint("reason IN ('captured', 'counterexample')", name="reason"),
        CheckConstraint("size >= 0", name="size"),
        Index(None, "original_sha256", "kernel"),
    )

    sha256: str = Field(primary_key=True, max_length=64)
    original_sha256: str = Field(foreign_key="code_object.sha256", max_length=64)
    kernel: str
    name: str
    reason: str
    held_out: bool
    size: int = Field(sa_type=WIDE)
    dispatch_sha256: str | None = Field(default=None, max_length=64)
    content_sha256: str = Field(max_length=64)
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class RunRow(Table, table=True):
    """One execution of a task."""

    __tablename__ = "run"
    __table_args__ = (
        CheckConstraint("device_source IN ('measured', 'modelled')", name="device_source"),
    )

    id: str = Field(primary_key=True)
    task: str
    status: str
    started: datetime = Field(default_factory=now, sa_type=UtcDateTime, index=True)
    finished: datetime | None = Field(default=None, sa_type=UtcDateTime)
    config_sha256: str = Field(max_length=64)
    seed: int = Field(sa_type=WIDE)
    package_version: str
    toolchain: dict[str, Any] = Field(sa_type=JSON)
    device: str
    device_source: str


class SearchEventRow(Table, table=True):
    """One event of a search; ``data`` is all of it, `asmevo.search.events` says what for which."""

    __tablename__ = "search_event"
    __table_args__ = (
        UniqueConstraint("run_id", "number"),
        CheckConstraint("number >= 0", name="number"),
    )

    id: int | None = Field(default=None, primary_key=True)
    run_id: str = Field(foreign_key="run.id")
    number: int
    kind: str = Field(index=True)
    data: dict[str, Any] = Field(sa_type=JSON)
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class CandidateRow(Table, table=True):
    """One attempt of a run."""

    __tablename__ = "candidate"

    id: str = Field(primary_key=True)
    run_id: str = Field(foreign_key="run.id", index=True)
    parent_id: str | None = Field(default=None, foreign_key="candidate.id", index=True)
    original_sha256: str = Field(foreign_key="code_object.sha256", index=True, max_length=64)
    kernel: str
    object_sha256: str | None = Field(
        default=None, foreign_key="code_object.sha256", index=True, max_length=64)
    assembly_sha256: str | None = Field(default=None, max_length=64)
    edits: list[dict[str, Any]] = Field(sa_type=JSON)
    rule: str
    direction: str
    rationale: str
    worker: int
    status: str
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class VerdictRow(Table, table=True):
    """What one gate said of a candidate; ``attempt`` counts its repeats from 1."""

    __tablename__ = "verdict"
    __table_args__ = (
        UniqueConstraint("candidate_id", "gate", "attempt"),
        CheckConstraint("outcome IN ('pass', 'fail', 'missing')", name="outcome"),
    )

    id: int | None = Field(default=None, primary_key=True)
    candidate_id: str = Field(foreign_key="candidate.id")
    gate: str
    attempt: int
    outcome: str
    code: str
    reason: str
    evidence: dict[str, Any] = Field(sa_type=JSON)


class TimingRow(Table, table=True):
    """Latencies of one dispatch in a run: of a candidate, or of the original."""

    __tablename__ = "timing"
    __table_args__ = (
        CheckConstraint("(candidate_id IS NULL) <> (original_sha256 IS NULL)", name="subject"),
        CheckConstraint("source IN ('measured', 'modelled')", name="source"),
    )

    id: int | None = Field(default=None, primary_key=True)
    run_id: str = Field(foreign_key="run.id", index=True)
    candidate_id: str | None = Field(default=None, foreign_key="candidate.id", index=True)
    original_sha256: str | None = Field(
        default=None, foreign_key="code_object.sha256", index=True, max_length=64)
    dispatch_sha256: str = Field(foreign_key="dispatch.sha256", index=True, max_length=64)
    samples: list[float] = Field(sa_type=JSON)
    unit: str = "us"
    source: str
    device: str
    warmup: int


class ReplacementRow(Table, table=True):
    """A committed candidate."""

    __tablename__ = "replacement"
    __table_args__ = (
        UniqueConstraint("candidate_id"),
        CheckConstraint("timing_source IN ('measured', 'modelled')", name="timing_source"),
        CheckConstraint("speedup > 0", name="speedup"),
        # In the order of a listing, and with all that one filters by: it reads as many rows of
        # the table as it returns.
        Index("ix_replacement_order", "original_sha256", "kernel", "timing_source", "speedup",
              "device"),
        Index(None, "created"),
    )

    id: int | None = Field(default=None, primary_key=True)
    original_sha256: str = Field(foreign_key="code_object.sha256", max_length=64)
    kernel: str
    candidate_id: str = Field(foreign_key="candidate.id")
    object_sha256: str = Field(foreign_key="code_object.sha256", index=True, max_length=64)
    speedup: float
    timing_source: str
    device: str
    evidence_complete: bool
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class SecondTimingRow(Table, table=True):
    """What a fresh process found of a committed candidate; ``speedup`` is absent where nothing."""

    __tablename__ = "second_timing"
    __table_args__ = (
        CheckConstraint("outcome IN ('pass', 'fail', 'missing')", name="outcome"),
    )

    candidate_id: str = Field(primary_key=True, foreign_key="candidate.id")
    speedup: float | None = None
    confirmed: bool = False
    outcome: str = "missing"
    code: str = ""
    reason: str = ""
    evidence: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class JudgementRow(Table, table=True):
    """By which thresholds and on what inputs a committed candidate was judged."""

    __tablename__ = "judgement"

    candidate_id: str = Field(primary_key=True, foreign_key="candidate.id")
    data: dict[str, Any] = Field(sa_type=JSON)


class StatementRow(Table, table=True):
    """What a replacement is and rests on. Blob ``statement_sha256`` says it in canonical JSON."""

    __tablename__ = "statement"

    candidate_id: str = Field(primary_key=True, foreign_key="candidate.id")
    statement_sha256: str = Field(max_length=64)
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)


class SignatureRow(Table, table=True):
    """An Ed25519 signature of a statement; key and signature are in hexadecimal."""

    __tablename__ = "signature"
    __table_args__ = (UniqueConstraint("candidate_id", "public_key", "statement_sha256"),)

    id: int | None = Field(default=None, primary_key=True)
    candidate_id: str = Field(foreign_key="candidate.id")
    public_key: str = Field(max_length=64)
    statement_sha256: str = Field(max_length=64)
    signature: str = Field(max_length=128)
    created: datetime = Field(default_factory=now, sa_type=UtcDateTime)
