"""The JSON documents that the command line prints for machines.

Every document carries ``schema_version``; it changes when a field is removed or changes meaning.
Times are ISO 8601 in UTC, latencies are in microseconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asmevo.device.device import Timing
    from asmevo.registry.browse.ancestry import Step
    from asmevo.registry.catalog.statistics import Statistics
    from asmevo.registry.delivery.pull import Replacement
    from asmevo.registry.records import (
        CandidateRecord,
        CaptureRecord,
        DispatchRecord,
        ObjectRecord,
        RecoveredRecord,
        ReplacementRecord,
        RunRecord,
    )
    from asmevo.registry.signing.signatures import SignatureRecord

SCHEMA_VERSION = 1


def list_document(replacements: Sequence[ReplacementRecord], total: int,
                  signers: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """``list``: of ``total`` replacements those that the limit allows.

    ``signers`` are public keys by candidate, as they are recorded.
    """
    return _document(total=total, replacements=[
        {**replacement_entry(r), "signed_by": list(signers.get(r.candidate_id, ()))}
        for r in replacements])


def show_document(kind: str, **content: Any) -> dict[str, Any]:
    """``show``: ``kind`` says what was found."""
    return _document(kind=str(kind), **content)


def captures_document(captures: Sequence[CaptureRecord]) -> dict[str, Any]:
    """``captures``: captured dispatches, oldest first; ``size`` is their memory in bytes."""
    return _document(captures=[capture_entry(r) for r in captures])


def log_document(run: RunRecord, candidates: Sequence[CandidateRecord],
                 speedups: Mapping[str, float]) -> dict[str, Any]:
    """``log`` of a run: its lineage; ``speedup`` is null for what was not committed."""
    return _document(**_lineage(run, candidates, speedups))


def lineages_document(
    original_sha256: str,
    runs: Sequence[tuple[RunRecord, Sequence[CandidateRecord], Mapping[str, float]]],
) -> dict[str, Any]:
    """``log`` of an original: the lineages of its runs, the newest first."""
    return _document(original_sha256=original_sha256, runs=[_lineage(*run) for run in runs])


def ancestry_document(steps: Sequence[Step]) -> dict[str, Any]:
    """``log`` of a candidate: the steps from the original to it, the first first."""
    return _document(original_sha256=steps[-1].record.original_sha256,
                     kernel=steps[-1].record.kernel, steps=[step.document() for step in steps])


def _lineage(run: RunRecord, candidates: Sequence[CandidateRecord],
             speedups: Mapping[str, float]) -> dict[str, Any]:
    return {"run": _fields(run), "candidates": [
        {**candidate_entry(c), "speedup": speedups.get(c.id)} for c in candidates]}


def statistics_document(found: Statistics) -> dict[str, Any]:
    """``stats``."""
    return _document(**dataclasses.asdict(found))


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
    entry["status"] = record.status.value
    return entry


def candidate_entry(record: CandidateRecord) -> dict[str, Any]:
    """One candidate with its evidence."""
    entry = _fields(record)
    entry["timings"] = [timing_entry(t) for t in record.timings]
    return entry


def timing_entry(timing: Timing) -> dict[str, Any]:
    """Latencies of one dispatch, in microseconds."""
    return {"dispatch_sha256": timing.dispatch, "samples_us": list(timing.samples_us),
            "median_us": timing.median_us, "source": timing.source, "device": timing.device,
            "warmup": timing.warmup}


def run_entry(record: RunRecord, config: str | None) -> dict[str, Any]:
    """One run; ``config`` is the YAML it was made from, null where the blob is gone."""
    return {**_fields(record), "config": config}


def object_entry(record: ObjectRecord) -> dict[str, Any]:
    """One code object."""
    return _fields(record)


def recovered_entry(record: RecoveredRecord) -> dict[str, Any]:
    """One recovered text of a code object."""
    return _fields(record)


def dispatch_entry(record: DispatchRecord) -> dict[str, Any]:
    """One dispatch."""
    return _fields(record)


def capture_entry(record: CaptureRecord) -> dict[str, Any]:
    """One captured dispatch."""
    return _fields(record)


def signature_entry(record: SignatureRecord) -> dict[str, Any]:
    """One recorded signature; ``current`` if it is of the statement that holds now."""
    return _fields(record)


def _document(**content: Any) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, **content}


def _fields(record: Any) -> dict[str, Any]:
    fields = dataclasses.asdict(record)
    for name in ("created", "started", "finished"):
        if fields.get(name) is not None:
            fields[name] = fields[name].isoformat()
    return fields
