"""Captured dispatches in the registry: documents and memory are blobs among the others."""

from __future__ import annotations

from sqlalchemy import func
from sqlmodel import Session, col, select

from asmevo.dispatch.captured.capture import Capture
from asmevo.dispatch.captured.document import from_document, identity, to_document
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.registry.blobs.store import Blobs, StagedBlobs
from asmevo.registry.database.models import CaptureRow, CodeObjectRow
from asmevo.registry.errors import QuotaError, RegistryError
from asmevo.registry.records import CaptureReason, CaptureRecord

MOST_COUNTEREXAMPLES = 32
MOST_COUNTEREXAMPLE_BYTES = 256 << 20


class RegistryBlobs:
    """The registry's blobs as those of a capture."""

    def __init__(self, store: Blobs | StagedBlobs) -> None:
        self._store = store

    def put(self, data: bytes) -> str:
        return self._store.put(data)

    def get(self, sha256: str, size: int) -> bytes:
        data = self._store.get(sha256)
        if len(data) != size:
            raise CaptureError(f"blob {sha256} has {len(data)} bytes, {size} are expected")
        return data


def add_capture(session: Session, row: CaptureRow) -> None:
    """Add a capture unless it is there; one that was a counterexample stays one.

    Raises `RegistryError` when its code object is not stored.
    """
    if session.get(CodeObjectRow, row.original_sha256) is None:
        raise RegistryError(f"the registry has no code object {row.original_sha256}, of which "
                            f"capture '{row.name}' is")
    known = session.get(CaptureRow, row.sha256)
    if known is None:
        session.add(row)
    elif row.reason == CaptureReason.COUNTEREXAMPLE.value:
        known.reason, known.dispatch_sha256 = row.reason, row.dispatch_sha256
        known.held_out = row.held_out


def is_known(session: Session, row: CaptureRow) -> bool:
    """Whether that counterexample is kept already."""
    known = session.get(CaptureRow, row.sha256)
    return known is not None and known.reason == CaptureReason.COUNTEREXAMPLE.value


def has_room(session: Session, row: CaptureRow) -> bool:
    """Whether another counterexample of that kernel may be kept."""
    number, size = session.exec(
        select(func.count(), func.coalesce(func.sum(CaptureRow.size), 0)).where(
            CaptureRow.original_sha256 == row.original_sha256, CaptureRow.kernel == row.kernel,
            CaptureRow.reason == CaptureReason.COUNTEREXAMPLE.value)).one()
    return (number < MOST_COUNTEREXAMPLES
            and int(size) + row.size <= MOST_COUNTEREXAMPLE_BYTES)


def check_quota(session: Session, capture: Capture, most: int) -> None:
    """Raise `QuotaError` if all captures and this one describe more than ``most`` bytes."""
    if session.get(CaptureRow, identity(capture)) is not None:
        return
    taken = int(session.exec(select(func.coalesce(func.sum(CaptureRow.size), 0))).one())
    if taken + capture.size > most:
        raise QuotaError(
            f"capture '{capture.name}' of {capture.size} bytes does not fit: captures take {taken} "
            f"of {most} bytes (max_capture_bytes); asmevo-registry gc --capture-bytes drops the "
            "oldest")


def capture_row(capture: Capture, store: StagedBlobs, *, reason: CaptureReason,
                held_out: bool, dispatch_sha256: str | None = None) -> CaptureRow:
    """The row of a capture, whose blobs are stored."""
    return CaptureRow(
        sha256=identity(capture), original_sha256=capture.code_object, kernel=capture.kernel,
        name=capture.name, reason=reason.value, held_out=held_out, size=capture.size,
        dispatch_sha256=dispatch_sha256,
        content_sha256=store.put(to_document(capture, RegistryBlobs(store))))


def capture_records(session: Session, original_sha256: str | None,
                    kernel: str | None) -> tuple[CaptureRecord, ...]:
    """The captures of a kernel, oldest first."""
    query = select(CaptureRow).order_by(col(CaptureRow.created), col(CaptureRow.sha256))
    if original_sha256 is not None:
        query = query.where(CaptureRow.original_sha256 == original_sha256)
    if kernel is not None:
        query = query.where(CaptureRow.kernel == kernel)
    rows = session.exec(query)
    return tuple(
        CaptureRecord(r.sha256, r.original_sha256, r.kernel, r.name, CaptureReason(r.reason),
                      r.held_out, r.size, r.dispatch_sha256, r.created) for r in rows)


def load_capture(session: Session, sha256: str, store: Blobs) -> Capture:
    """A stored capture, verified. Raises `RegistryError`."""
    row = session.get(CaptureRow, sha256)
    if row is None:
        raise RegistryError(f"the registry has no capture {sha256}")
    try:
        capture = from_document(store.get(row.content_sha256), RegistryBlobs(store))
    except CaptureError as error:
        raise RegistryError(f"capture {sha256} is corrupt: {error}") from error
    if (identity(capture), capture.code_object, capture.kernel) != (
            row.sha256, row.original_sha256, row.kernel):
        raise RegistryError(f"the record of capture {sha256} does not match its content")
    return capture
