"""Code objects and what was recovered of them, to rows and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from sqlmodel import Session, col, select

from asmevo.registry.database.models import CodeObjectRow, RecoveredObjectRow
from asmevo.registry.records import ObjectRecord, RecoveredRecord
from asmevo.registry.rows.values import json_object

if TYPE_CHECKING:
    from asmevo.codeobject.container import CodeObject
    from asmevo.gates.verdict import JsonValue


def add_object(session: Session, code_object: CodeObject, source: str) -> None:
    """Add the row of a code object unless it is there; the first ``source`` stays."""
    if session.get(CodeObjectRow, code_object.sha256) is None:
        session.add(CodeObjectRow(
            sha256=code_object.sha256, isa=code_object.target.isa, size=len(code_object.data),
            kernels=[k.symbol for k in code_object.kernels], source=source))
        session.flush()


def object_records(session: Session, prefix: str) -> tuple[ObjectRecord, ...]:
    """The code objects whose SHA-256 starts with ``prefix``."""
    rows = session.exec(select(CodeObjectRow).where(
        col(CodeObjectRow.sha256).startswith(prefix.lower(), autoescape=True)))
    return tuple(object_record(row) for row in rows)


def object_record(row: CodeObjectRow) -> ObjectRecord:
    """The record of a code object."""
    return ObjectRecord(row.sha256, row.isa, row.size, tuple(row.kernels), row.source, row.created)


def add_recovered(session: Session, code_object_sha256: str, assembly_sha256: str,
                  report: Mapping[str, JsonValue], toolchain: Mapping[str, JsonValue]) -> None:
    """Add a recovered text unless the same toolchain has made the same."""
    made_by = json_object(toolchain)
    toolchain_sha256 = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()
    if session.exec(select(RecoveredObjectRow).where(
            RecoveredObjectRow.code_object_sha256 == code_object_sha256,
            RecoveredObjectRow.assembly_sha256 == assembly_sha256,
            RecoveredObjectRow.toolchain_sha256 == toolchain_sha256)).first() is None:
        session.add(RecoveredObjectRow(
            code_object_sha256=code_object_sha256, assembly_sha256=assembly_sha256,
            report=json_object(report), toolchain=made_by, toolchain_sha256=toolchain_sha256))


def recovered_records(session: Session, code_object_sha256: str) -> tuple[RecoveredRecord, ...]:
    """The recovered texts of a code object, oldest first."""
    rows = session.exec(
        select(RecoveredObjectRow)
        .where(RecoveredObjectRow.code_object_sha256 == code_object_sha256)
        .order_by(col(RecoveredObjectRow.id)))
    return tuple(RecoveredRecord(cast(int, row.id), row.code_object_sha256, row.assembly_sha256,
                                 row.report, row.toolchain, row.created) for row in rows)
