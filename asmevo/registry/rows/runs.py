"""Runs, to rows and back."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from sqlmodel import Session, col, select

import asmevo
from asmevo.registry.database.models import CandidateRow, ReplacementRow, RunRow, now
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import RunRecord, RunStatus, Source
from asmevo.registry.rows.values import json_object

if TYPE_CHECKING:
    from asmevo.gates.verdict import JsonValue


def run_row(session: Session, run_id: str) -> RunRow:
    """The row of a run; raises `RegistryError` if there is none."""
    row = session.get(RunRow, run_id)
    if row is None:
        raise RegistryError(f"the registry has no run '{run_id}'")
    return row


def new_run(*, task: str, config_sha256: str, seed: int, toolchain: Mapping[str, JsonValue],
            device: str, device_source: str) -> RunRow:
    """The row of a run that starts now, with an id of its own."""
    started = now()
    return RunRow(
        id=f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}", task=task,
        status=RunStatus.RUNNING.value, started=started, config_sha256=config_sha256, seed=seed,
        package_version=asmevo.__version__, toolchain=json_object(toolchain), device=device,
        device_source=device_source)


def run_record(row: RunRow) -> RunRecord:
    """The record of a run."""
    return RunRecord(row.id, row.task, RunStatus(row.status), row.started, row.finished,
                     row.config_sha256, row.seed, row.package_version, row.toolchain, row.device,
                     cast(Source, row.device_source))


def run_records(session: Session, original_sha256: str | None) -> tuple[RunRecord, ...]:
    """All runs, or those with candidates of an original, newest first."""
    query = select(RunRow).order_by(col(RunRow.started).desc(), col(RunRow.id))
    if original_sha256 is not None:
        query = query.where(col(RunRow.id).in_(select(CandidateRow.run_id).where(
            CandidateRow.original_sha256 == original_sha256)))
    return tuple(run_record(row) for row in session.exec(query))


def refuse_if_committed(session: Session, run_id: str) -> None:
    """Raise `RegistryError` once a candidate of a run is a replacement."""
    if session.exec(select(ReplacementRow.id).join(CandidateRow)
                    .where(CandidateRow.run_id == run_id)).first() is not None:
        raise RegistryError(f"run '{run_id}' has replacements; its baseline is part of what was "
                            "stated of them")
