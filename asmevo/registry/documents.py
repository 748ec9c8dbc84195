"""The JSON documents that the command line prints for machines.

Every document carries ``schema_version``; it changes when a field is removed or changes meaning.
Times are ISO 8601 in UTC, latencies are in microseconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asmevo.registry.records import (
        CandidateRecord,
        CaptureRecord,
        ObjectRecord,
        RecoveredRecord,
        ReplacementRecord,
        RunRecord,
    )
    from asmevo.registry.replacement import Replacement

SCHEMA_VERSION = 1


def list_document(replacements: Sequence[ReplacementRecord]) -> dict[str, Any]:
    """``list``."""
    return _document(replacements=[replacement_entry(r) for r in replacements])


def show_document(record: ObjectRecord, content: str, recovered: Sequence[RecoveredRecord],
                  replacements: Sequence[ReplacementRecord],
                  replaces: Sequence[tuple[ReplacementRecord, CandidateRecord]],
                  ) -> dict[str, Any]:
    """``show``: an object, the replacements it has, and the evidence for being one itself."""
    return _document(
        object={**_fields(record), "content": content},
        recovered=[_fields(r) for r in recovered],
        replacements=[replacement_entry(r) for r in replacements],
        replaces=[{"replacement": replacement_entry(r), "candidate": candidate_entry(c)}
                  for r, c in replaces],
    )


def captures_document(captures: Sequence[CaptureRecord]) -> dict[str, Any]:
    """``captures``: captured dispatches, oldest first; ``size`` is their memory in bytes."""
    return _document(captures=[_fields(r) for r in captures])


def log_document(run: RunRecord, candidates: Sequence[CandidateRecord],
                 speedups: dict[str, float]) -> dict[str, Any]:
    """``log``: a run and its lineage; ``speedup`` is null for what was not committed."""
    return _document(
        run=_fields(run),
        candidates=[{**candidate_entry(c), "speedup": speedups.get(c.id)} for c in candidates],
    )


def pull_document(found: Replacement, output: str) -> dict[str, Any]:
    """``pull`` that succeeded; ``skipped`` are the replacements that were refused before it."""
    return _document(
        status="pulled", output=output, replacement=replacement_entry(found.record),
        statement_sha256=found.statement_sha256, signers=list(found.signers),
        skipped=[_fields(s) for s in found.skipped])


def refusal_document(code: str, reason: str) -> dict[str, Any]:
    """``pull`` that was refused."""
    return _document(status="refused", code=code, reason=reason)


def replacement_entry(record: ReplacementRecord) -> dict[str, Any]:
    """One replacement."""
    entry = _fields(record)
    entry["replacement_sha256"] = entry.pop("object_sha256")
    entry["judgement"] = None if record.judgement is None else record.judgement.to_json()
    entry["weaker"] = list(record.weaknesses)
    return entry


def candidate_entry(record: CandidateRecord) -> dict[str, Any]:
    """One candidate with its evidence."""
    entry = _fields(record)
    entry["timings"] = [
        {"dispatch_sha256": t.dispatch, "samples_us": list(t.samples_us),
         "median_us": t.median_us, "source": t.source, "device": t.device, "warmup": t.warmup}
        for t in record.timings
    ]
    return entry


def _document(**content: Any) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, **content}


def _fields(record: Any) -> dict[str, Any]:
    fields = dataclasses.asdict(record)
    for name in ("created", "started", "finished"):
        if fields.get(name) is not None:
            fields[name] = fields[name].isoformat()
    return fields
