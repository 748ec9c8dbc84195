"""The blobs of a capture: files named by the SHA-256 of what they hold, raw or compressed."""

from __future__ import annotations

import hashlib
import io
import os
import re
from pathlib import Path
from typing import Protocol

import zstandard

from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import open_regular
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.durable import write_atomically

MAX_WINDOW = 1 << 27
"""Largest zstd window accepted, bytes: bounds the decoder's memory whatever a frame asks for."""

_CHUNK = 1 << 20
_LEVEL = 3
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Blobs(Protocol):
    """Bytes by the SHA-256 of their content."""

    def put(self, data: bytes) -> str:
        """Store ``data``; gives its SHA-256."""
        ...

    def get(self, sha256: str, size: int) -> bytes:
        """The ``size`` bytes of that hash, verified. Raises `CaptureError`."""
        ...


def check_sha256(text: object) -> str:
    """``text`` if it is 64 lower-case hexadecimal digits. Raises `CaptureError`."""
    if not isinstance(text, str) or _SHA256.fullmatch(text) is None:
        raise CaptureError(f"{str(text)[:80]!r} is not a SHA-256 in lower-case hexadecimal")
    return text


def read_bounded(path: Path, limit: int) -> bytes:
    """A regular file of at most ``limit`` bytes. Raises `CaptureError` and `SourceError`."""
    with open_regular(path) as file:
        # Not `read(limit + 1)`, which would take that much memory at once whatever the file has.
        held = os.fstat(file.fileno()).st_size
        data = file.read(min(held, limit) + 1)
    if len(data) > limit:
        raise CaptureError(f"'{path.name}' is larger than the {limit} bytes it may have")
    return data


class BlobFolder:
    """``<folder>/aa/<sha256>.zst``, or without ``.zst`` as it is; ``aa`` begins the hash.

    A recorder in an application's way may store blobs raw. Nothing in a name or a size is trusted:
    a name is a hash or refused, and no more is read or decompressed than what was asked for.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Store ``data`` durably, compressed, unless it is there already."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self._path(sha256).with_suffix(".zst")
        if not path.exists():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, zstandard.ZstdCompressor(level=_LEVEL).compress(data))
            except OSError as error:
                raise CaptureError(f"cannot write blob '{path}': "
                                   f"{error.strerror or error}") from error
        return sha256

    def get(self, sha256: str, size: int) -> bytes:
        data = self.get_bounded(sha256, size)
        if len(data) != size:
            raise CaptureError(f"blob {sha256} has {len(data)} bytes, {size} are expected")
        return data

    def get_bounded(self, sha256: str, size: int) -> bytes:
        """The bytes of that hash, verified, at most ``size`` of them. Raises `CaptureError`."""
        path = self._path(check_sha256(sha256))
        compressed = path.with_suffix(".zst")
        try:
            if compressed.exists():
                # The zstd format adds at most 3 bytes to each incompressible block of 128 KiB (RFC
                # 8878, section 3.1.1.2) besides its frame.
                data = _decompressed(sha256, read_bounded(compressed, size + size // 1024 + 1024),
                                     size)
            else:
                data = read_bounded(path, size)
        except SourceError as error:
            raise CaptureError(f"a blob of the capture cannot be used: {error}") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise CaptureError(f"the content of blob {sha256} does not match its name")
        return data

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256


def _decompressed(sha256: str, compressed: bytes, size: int) -> bytes:
    decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    out = io.BytesIO()
    try:
        with decoder.stream_reader(compressed) as reader:
            while chunk := reader.read(_CHUNK):
                out.write(chunk)
                if out.tell() > size:
                    raise CaptureError(f"blob {sha256} decompresses to more than the {size} bytes "
                                       "expected")
    except zstandard.ZstdError:
        raise CaptureError(f"blob {sha256} is no valid zstd data") from None
    return out.getvalue()
