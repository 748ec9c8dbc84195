"""Rows that need no other package: objects, runs, replacements, and values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from sqlmodel import Session, col, select

from asmevo.registry.database.models import (
    CandidateRow,
    CodeObjectRow,
    DispatchRow,
    RecoveredObjectRow,
    ReplacementRow,
    RunRow,
)
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import (
    DispatchRecord,
    ObjectRecord,
    RecoveredRecord,
    RunRecord,
    RunStatus,
    Source,
)

if TYPE_CHECKING:
    from asmevo.codeobject.container import CodeObject
    from asmevo.gates.verdict import JsonValue


def json_object(value: Mapping[str, JsonValue]) -> dict[str, Any]:
    """A copy that standard JSON can hold.

    JSON has no infinities and no NaN; they become the strings ``inf``, ``-inf`` and ``nan``. Any
    other type that JSON lacks raises `RegistryError`.
    """
    return {str(key): json_value(item) for key, item in value.items()}


def json_value(value: object) -> Any:
    """`json_object` for any value."""
    if isinstance(value, Mapping):
        return json_object(value)
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, bool | int | str):
        return value
    raise RegistryError(f"a record holds a value of type {type(value).__name__}, which is not JSON")


def add_object(session: Session, code_object: CodeObject, source: str) -> None:
    """Add the row of a code object unless it is there; the first ``source`` stays."""
    if session.get(CodeObjectRow, code_object.sha256) is None:
        session.add(CodeObjectRow(
            sha256=code_object.sha256, isa=code_object.target.isa, size=len(code_object.data),
            kernels=[k.symbol for k in code_object.kernels], source=source))
        session.flush()


def object_record(row: CodeObjectRow) -> ObjectRecord:
    """The record of a code object."""
    return ObjectRecord(row.sha256, row.isa, row.size, tuple(row.kernels), row.source, row.created)


def recovered_record(row: RecoveredObjectRow) -> RecoveredRecord:
    """The record of a recovered object."""
    return RecoveredRecord(cast(int, row.id), row.code_object_sha256, row.assembly_sha256,
                           row.report, row.toolchain, row.created)


def dispatch_records(session: Session,
                     sha256s: Collection[str]) -> dict[str, DispatchRecord]:
    """The records of dispatches by SHA-256, as far as they are stored."""
    rows = session.exec(select(DispatchRow).where(col(DispatchRow.sha256).in_(sha256s)))
    return {row.sha256: DispatchRecord(row.sha256, row.kernel, row.name, row.held_out,
                                       row.content_sha256, row.created) for row in rows}


def run_row(session: Session, run_id: str) -> RunRow:
    """The row of a run; raises `RegistryError` if there is none."""
    row = session.get(RunRow, run_id)
    if row is None:
        raise RegistryError(f"the registry has no run '{run_id}'")
    return row


def run_record(row: RunRow) -> RunRecord:
    """The record of a run."""
    return RunRecord(row.id, row.task, RunStatus(row.status), row.started, row.finished,
                     row.config_sha256, row.seed, row.package_version, row.toolchain, row.device,
                     cast(Source, row.device_source))


def refuse_if_committed(session: Session, run_id: str) -> None:
    """Raise `RegistryError` once a candidate of a run is a replacement."""
    if session.exec(select(ReplacementRow.id).join(CandidateRow)
                    .where(CandidateRow.run_id == run_id)).first() is not None:
        raise RegistryError(f"run '{run_id}' has replacements; its baseline is part of what was "
                            "stated of them")
