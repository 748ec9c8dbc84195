"""How much of what the blobs of a registry hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import zstandard
from sqlmodel import Session, select

from asmevo.registry.blobs.store import Blobs, BlobStore, StoredBlob
from asmevo.registry.database.models import (
    CandidateRow,
    CaptureRow,
    CodeObjectRow,
    DispatchRow,
    RecoveredObjectRow,
    RunRow,
    StatementRow,
)
from asmevo.registry.errors import BlobError, RegistryError
from asmevo.registry.rows.named_blobs import blobs_in

_FRAME_HEADER = 18
"""Bytes that the header of a zstd frame has at most (RFC 8878 section 3.1.1.1)."""

_KINDS: Mapping[str, tuple[Any, ...]] = {
    "code_objects": (CodeObjectRow.sha256,),
    "assembly": (RecoveredObjectRow.assembly_sha256, CandidateRow.assembly_sha256),
    "configurations": (RunRow.config_sha256,),
    "statements": (StatementRow.statement_sha256,),
    "dispatches": (DispatchRow.content_sha256,),
    "captures": (CaptureRow.content_sha256,),
}
_DOCUMENTS = {"dispatches": "dispatch", "captures": "capture"}
MEMORY, UNUSED = "launch_memory", "unreferenced"


@dataclass(frozen=True, slots=True)
class Stored:
    """Blobs of one kind: their number, bytes as stored, and bytes of content where the store can
    tell without reading all."""

    kind: str
    blobs: int
    stored_bytes: int
    content_bytes: int | None


def kinds(session: Session, blobs: Blobs) -> Mapping[str, str]:
    """What each blob that the registry refers to is, by SHA-256.

    A document that cannot be read counts, what it refers to then does not.
    """
    found: dict[str, str] = {}
    for kind, columns in _KINDS.items():
        named = {sha256 for column in columns
                 for sha256 in session.exec(select(column).distinct()) if sha256 is not None}
        if kind in _DOCUMENTS:
            for sha256 in named:
                for part in _parts(blobs, sha256, _DOCUMENTS[kind]):
                    found.setdefault(part, MEMORY)
        found.update(dict.fromkeys(named, kind))
    return found


def stored(blobs: Blobs, known: Mapping[str, str]) -> tuple[Stored, ...]:
    """All blobs by kind, in the order of the table above."""
    found: defaultdict[str, list[StoredBlob]] = defaultdict(list)
    for blob in blobs.list():
        found[known.get(blob.sha256 or "", UNUSED)].append(blob)
    return tuple(_total(blobs, kind, found[kind])
                 for kind in (*_KINDS, MEMORY, UNUSED) if kind in found)


def _total(blobs: Blobs, kind: str, of: Sequence[StoredBlob]) -> Stored:
    content = _content(blobs, of) if isinstance(blobs, BlobStore) else None
    return Stored(kind, len(of), sum(blob.size for blob in of), content)


def _content(blobs: BlobStore, of: Iterable[StoredBlob]) -> int | None:
    """A frame says how much it holds; that this is true is `verify`'s business."""
    total = 0
    for blob in of:
        if blob.sha256 is None:
            continue
        try:
            with blobs.open(blob.sha256) as file:
                size = zstandard.frame_content_size(file.read(_FRAME_HEADER))
        except (BlobError, OSError, zstandard.ZstdError):
            continue
        if size < 0:
            return None
        total += size
    return total


def _parts(blobs: Blobs, sha256: str, table: str) -> Iterable[str]:
    try:
        return blobs_in(table, blobs.get(sha256))
    except RegistryError:
        return ()
