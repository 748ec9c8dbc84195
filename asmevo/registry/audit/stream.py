"""The content of a blob piece by piece, so that a large one is never in memory as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import zstandard

from asmevo.registry.blobs.store import GIB, MAX_WINDOW, BlobStore
from asmevo.registry.errors import BlobCorruptError, BlobError, os_reason
from asmevo.registry.signing.statement import Blobs

CHUNK = 1 << 20


def chunks(store: Blobs, sha256: str) -> Iterator[memoryview]:
    """The content of a blob, each piece valid until the next one is asked for.

    It is what its name says only once all of it was read. Raises `BlobError`. A store that is no
    local folder gives its blobs as a whole.
    """
    if not isinstance(store, BlobStore):
        yield memoryview(store.get(sha256))
        return
    path, size, digest = store.path(sha256), 0, hashlib.sha256()
    view = memoryview(bytearray(CHUNK))
    decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    try:
        with store.open(sha256) as file, decoder.stream_reader(file, read_size=CHUNK) as reader:
            while length := reader.readinto(view):
                digest.update(view[:length])
                size += length
                if size > GIB:
                    raise BlobCorruptError(f"blob {path} is larger than it may be")
                yield view[:length]
    except OSError as error:
        raise BlobError(f"cannot read blob {path}: {os_reason(error)}") from error
    except zstandard.ZstdError:
        raise BlobCorruptError(f"blob {path} is corrupt: it is not valid zstd data") from None
    if digest.hexdigest() != sha256:
        raise BlobCorruptError(
            f"blob {path} is corrupt: its content does not match its name")


def is_intact(store: Blobs, sha256: str) -> bool:
    """Whether a store has a blob, and it is what its name says."""
    try:
        for _ in chunks(store, sha256):
            pass
    except BlobError:
        return False
    return True
