"""All that is recorded of one thing, gathered for ``show``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from asmevo.registry.browse.documents import (
    candidate_entry,
    capture_entry,
    dispatch_entry,
    object_entry,
    recovered_entry,
    replacement_entry,
    run_entry,
    show_document,
    signature_entry,
    timing_entry,
)
from asmevo.registry.catalog.identities import Identity, Kind
from asmevo.registry.errors import BlobCorruptError, BlobError, BlobMissingError, RegistryError
from asmevo.registry.records import CandidateStatus

if TYPE_CHECKING:
    from asmevo.device.device import Timing
    from asmevo.gates.verdict import JsonValue
    from asmevo.registry.records import (
        CandidateRecord,
        CaptureRecord,
        DispatchRecord,
        ObjectRecord,
        RecoveredRecord,
        ReplacementRecord,
        RunRecord,
    )
    from asmevo.registry.registry import Registry
    from asmevo.registry.signing.signatures import SignatureRecord


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run; ``config`` is the text of its configuration, None where the blob is gone."""

    record: RunRecord
    config: str | None
    statuses: Mapping[CandidateStatus, int] = field(default_factory=dict)
    replacements: Sequence[ReplacementRecord] = ()

    def document(self) -> dict[str, Any]:
        """``show`` of a run."""
        return show_document(
            Kind.RUN, run=run_entry(self.record, self.config),
            candidates={status.value: self.statuses.get(status, 0) for status in CandidateStatus},
            replacements=[replacement_entry(r) for r in self.replacements])


@dataclass(frozen=True, slots=True)
class ShownCandidate:
    """A candidate with its run; ``event`` is what the search recorded of the attempt.

    ``baseline`` are timings of the original in the same run, ``names`` those of dispatches.
    """

    record: CandidateRecord
    run: ShownRun
    replacement: ReplacementRecord | None
    signatures: Sequence[SignatureRecord]
    event: Mapping[str, JsonValue] | None
    baseline: Sequence[Timing]
    names: Mapping[str, str]

    def entry(self) -> dict[str, Any]:
        """All of it as a part of a document."""
        event = self.event or {}
        return {
            "candidate": candidate_entry(self.record),
            "proposer": event.get("proposer"), "assumption": event.get("assumption"),
            "baseline": [timing_entry(t) for t in self.baseline],
            "dispatch_names": dict(self.names),
            "replacement": None if self.replacement is None
            else replacement_entry(self.replacement),
            "signatures": [signature_entry(s) for s in self.signatures],
            "run": run_entry(self.run.record, self.run.config),
        }

    def document(self) -> dict[str, Any]:
        """``show`` of a candidate."""
        return show_document(Kind.CANDIDATE, **self.entry())


@dataclass(frozen=True, slots=True)
class ShownObject:
    """A code object: what replaces it, and what it is a replacement of.

    ``content`` is ``verified``, ``missing`` or ``corrupt``.
    """

    record: ObjectRecord
    content: str
    recovered: Sequence[RecoveredRecord]
    replacements: Sequence[ReplacementRecord]
    signers: Mapping[str, Sequence[str]]
    replaces: Sequence[ShownCandidate]
    captures: int

    def document(self) -> dict[str, Any]:
        """``show`` of an object."""
        return show_document(
            Kind.OBJECT, object={**object_entry(self.record), "content": self.content},
            recovered=[recovered_entry(r) for r in self.recovered],
            replacements=[replacement_entry(r) for r in self.replacements],
            replaces=[made.entry() for made in self.replaces], captures=self.captures)


@dataclass(frozen=True, slots=True)
class ShownDispatch:
    """A dispatch; ``launch`` is its geometry and memory, None where a blob of it is gone."""

    record: DispatchRecord
    launch: Mapping[str, Any] | None

    def document(self) -> dict[str, Any]:
        """``show`` of a dispatch."""
        return show_document(Kind.DISPATCH, dispatch=dispatch_entry(self.record),
                             launch=self.launch)


@dataclass(frozen=True, slots=True)
class ShownCapture:
    """A captured dispatch; ``content`` is ``verified`` or why it is not."""

    record: CaptureRecord
    content: str

    def document(self) -> dict[str, Any]:
        """``show`` of a capture."""
        return show_document(Kind.CAPTURE,
                             capture={**capture_entry(self.record), "content": self.content})


Shown: TypeAlias = ShownRun | ShownCandidate | ShownObject | ShownDispatch | ShownCapture


def shown(registry: Registry, identity: Identity) -> Shown:
    """All that the registry has of what an identity names. Raises `RegistryError`."""
    if identity.kind is Kind.OBJECT:
        return _object(registry, identity.id)
    if identity.kind is Kind.CANDIDATE:
        return _candidate(registry, registry.candidate(identity.id))
    if identity.kind is Kind.RUN:
        return _run(registry, identity.id)
    if identity.kind is Kind.DISPATCH:
        return _dispatch(registry, identity.id)
    return _capture(registry, identity.id)


def _object(registry: Registry, sha256: str) -> ShownObject:
    record = registry.code_object(sha256)
    if record is None:
        raise RegistryError(f"the registry has no code object {sha256}")
    replacements = registry.replacements(original_sha256=sha256)
    signatures = registry.catalog.signatures([r.candidate_id for r in replacements])
    made = [_candidate(registry, registry.candidate(r.candidate_id))
            for r in registry.replacements(object_sha256=sha256)]
    return ShownObject(
        record, _content(registry, sha256), registry.recovered(sha256), replacements,
        {candidate: tuple(s.public_key for s in of if s.current)
         for candidate, of in signatures.items()},
        made, len(registry.captures(original_sha256=sha256)))


def _candidate(registry: Registry, record: CandidateRecord) -> ShownCandidate:
    run = registry.run(record.run_id)
    found = () if record.object_sha256 is None else registry.replacements(
        object_sha256=record.object_sha256)
    timed = {timing.dispatch for timing in record.timings}
    baseline = [t for t in registry.baseline(run.id) if t.dispatch in timed]
    return ShownCandidate(
        record, ShownRun(run, _config(registry, run)),
        next((r for r in found if r.candidate_id == record.id), None),
        registry.catalog.signatures([record.id]).get(record.id, ()),
        registry.catalog.attempt_event(record), baseline,
        {sha256: d.name for sha256, d in registry.catalog.dispatches(timed).items()})


def _run(registry: Registry, run_id: str) -> ShownRun:
    record = registry.run(run_id)
    return ShownRun(record, _config(registry, record), registry.catalog.attempts_of(run_id),
                    registry.replacements(run_id=run_id))


def _dispatch(registry: Registry, sha256: str) -> ShownDispatch:
    record = registry.catalog.dispatches([sha256])[sha256]
    try:
        dispatch = registry.load_dispatch(sha256)
    except RegistryError:
        return ShownDispatch(record, None)
    return ShownDispatch(record, {
        "grid": list(dispatch.grid), "workgroup": list(dispatch.workgroup),
        "dynamic_lds": dispatch.dynamic_lds, "kernarg_bytes": len(dispatch.kernarg),
        "regions": [{"name": r.name, "role": r.role.value, "element": r.element.value,
                     "bytes": len(r.data)} for r in dispatch.regions]})


def _capture(registry: Registry, sha256: str) -> ShownCapture:
    record = next((r for r in registry.captures() if r.sha256 == sha256), None)
    if record is None:
        raise RegistryError(f"the registry has no capture {sha256}")
    try:
        registry.load_capture(sha256)
    except BlobMissingError:
        return ShownCapture(record, "missing")
    except RegistryError as error:
        if _is_unreadable(error):
            raise
        return ShownCapture(record, "corrupt")
    return ShownCapture(record, "verified")


def _content(registry: Registry, sha256: str) -> str:
    try:
        registry.load_object(sha256)
    except BlobMissingError:
        return "missing"
    except BlobCorruptError:
        return "corrupt"
    return "verified"


def _is_unreadable(error: RegistryError) -> bool:
    """Whether it says nothing of the content, which another user or another day may read."""
    return isinstance(error, BlobError) and not isinstance(error, BlobCorruptError)


def _config(registry: Registry, run: RunRecord) -> str | None:
    try:
        return registry.load_text(run.config_sha256)
    except RegistryError:
        return None
