"""A capture on disk: ``dispatch.json`` beside its blobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asmevo.codeobject.errors import SourceError
from asmevo.dispatch.captured.blobs import BlobFolder, read_bounded
from asmevo.dispatch.captured.capture import Capture
from asmevo.dispatch.captured.document import (
    MAX_BYTES,
    MAX_DOCUMENT,
    code_object_of,
    from_document,
    to_document,
)
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.durable import write_atomically

DOCUMENT = "dispatch.json"
BLOBS = "blobs"
_MOST = 1000


def write_capture(capture: Capture, folder: Path, *, code_object: bytes | None = None) -> Path:
    """Write a capture into ``folder``, which may hold the blobs of others; gives the document.

    ``code_object`` is stored beside the memory, so that the capture can be replayed elsewhere. The
    document appears last and whole: a folder without one is no capture. Raises `CaptureError`, in
    particular when a capture is there already.
    """
    document = folder / DOCUMENT
    if document.exists():
        raise CaptureError(f"'{folder}' holds a capture already")
    blobs = BlobFolder(folder / BLOBS)
    if code_object is not None and blobs.put(code_object) != capture.code_object:
        raise CaptureError(f"capture '{capture.name}' is not of that code object")
    text = to_document(capture, blobs)
    if len(text) > MAX_DOCUMENT:
        raise CaptureError(f"the document of capture '{capture.name}' would have {len(text)} "
                           f"bytes, more than {MAX_DOCUMENT}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(document, text, overwrite=False)
    except OSError as error:
        raise CaptureError(f"cannot write '{document}': {error.strerror or error}") from error
    return document


def read_capture(folder: Path, *, max_bytes: int = MAX_BYTES) -> Capture:
    """The capture in ``folder``, every blob verified, of at most ``max_bytes`` of memory.

    Raises `CaptureError`.
    """
    return from_document(_document(folder), BlobFolder(folder / BLOBS), max_bytes=max_bytes)


def capture_folders(paths: object) -> list[Path]:
    """The folders of captures that ``paths`` names: those of one or several, or a list of such.

    Raises `CaptureError`.
    """
    found: list[Path] = []
    for path in paths if isinstance(paths, Sequence) and not isinstance(paths, str) else [paths]:
        if not isinstance(path, str) or not path:
            raise CaptureError("a path of captures must name a folder, or be a list of folders")
        folder = Path(path).expanduser()
        inside = ([] if (folder / DOCUMENT).exists() else
                  sorted(document.parent for document in folder.glob(f"*/{DOCUMENT}")))
        found += inside or [folder]
    if len(found) > _MOST:
        raise CaptureError(f"there are {len(found)} captures, more than {_MOST}")
    return found


def _document(folder: Path) -> bytes:
    if not folder.is_dir():
        raise CaptureError(f"there is no capture '{folder}'")
    document = folder / DOCUMENT
    if not document.exists():
        raise CaptureError(f"'{folder}' is no capture, or an incomplete one: it has no {DOCUMENT}")
    try:
        return read_bounded(document, MAX_DOCUMENT)
    except SourceError as error:
        raise CaptureError(f"the capture cannot be read: {error}") from None


def read_code_object(folder: Path, limit: int) -> bytes:
    """The code object of a capture, of at most ``limit`` bytes. Raises `CaptureError`."""
    sha256 = code_object_of(_document(folder))
    return BlobFolder(folder / BLOBS).get_bounded(sha256, limit)
