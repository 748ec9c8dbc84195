"""Content-addressed blobs: zstd files named by the SHA-256 of their uncompressed content."""

from __future__ import annotations

import hashlib
import io
import re
import secrets
from pathlib import Path

import zstandard

from asmevo.durable import sync_folder, write_atomically
from asmevo.registry.errors import BlobCorruptError, BlobError, BlobMissingError, cannot, os_reason

GIB = 1 << 30
MAX_WINDOW = 1 << 27
"""Largest zstd window accepted, bytes: bounds the decoder's memory whatever a frame asks for."""

_CHUNK = 1 << 20
_LEVEL = 3
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


def is_sha256(text: str) -> bool:
    """Whether ``text`` is 64 lower-case hexadecimal digits."""
    return _SHA256.fullmatch(text) is not None


class BlobStore:
    """Blobs under ``<root>/blobs/aa/<sha256>.zst``.

    A blob appears complete or not at all (temporary file, fsync, rename), is stored once whatever
    its number of uses, and is verified at every read. ``max_bytes`` bounds the uncompressed size
    of one blob; a larger one is refused when written and counts as corrupt when read.
    """

    def __init__(self, root: Path, *, max_bytes: int = GIB) -> None:
        self._root = root / "blobs"
        self._max_bytes = max_bytes

    def path(self, sha256: str) -> Path:
        """Where the blob is or would be. Raises `BlobError` unless ``sha256`` is a SHA-256."""
        if not is_sha256(sha256):
            raise BlobError(f"{sha256[:80]!r} is not a SHA-256 in lower-case hexadecimal")
        return self._root / sha256[:2] / f"{sha256}.zst"

    def put(self, data: bytes) -> str:
        """Store ``data`` durably and return its SHA-256; a damaged copy on disk is replaced."""
        if len(data) > self._max_bytes:
            raise BlobError(
                f"a blob of {len(data)} bytes exceeds the limit of {self._max_bytes} bytes")
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(sha256)
        if self._is_intact(sha256):
            return sha256
        compressed = zstandard.ZstdCompressor(level=_LEVEL).compress(data)
        try:
            _make_folder(path.parent)
            write_atomically(path, compressed)
        except OSError as error:
            raise BlobError(f"cannot write blob {path}: {os_reason(error)}") from error
        return sha256

    def get(self, sha256: str) -> bytes:
        """The content of a blob, verified.

        Raises `BlobMissingError`, `BlobCorruptError`, or `BlobError` when the file is unreadable.
        """
        path = self.path(sha256)
        try:
            with path.open("rb") as file:
                # The zstd format adds at most 3 bytes to each incompressible 128 KiB block (RFC
                # 8878 section 3.1.1), so a longer file cannot hold a blob within the limit.
                limit = self._max_bytes + self._max_bytes // 1024 + 1024
                compressed = file.read(limit + 1)
        except FileNotFoundError as error:
            raise BlobMissingError(f"blob {sha256} is missing from {self._root}") from error
        except OSError as error:
            raise BlobError(f"cannot read blob {path}: {os_reason(error)}") from error
        if len(compressed) > limit:
            raise BlobCorruptError(f"blob {path} is larger than the limit allows")
        data = self._decompressed(path, compressed)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise BlobCorruptError(f"blob {path} is corrupt: its content does not match its name")
        return data

    def exists(self, sha256: str) -> bool:
        """Whether the blob is there, without reading it."""
        return self.path(sha256).exists()

    def check_writable(self) -> None:
        """Write and remove a small file; raises `RegistryError` when that fails."""
        probe = self._root / f".probe-{secrets.token_hex(8)}"
        try:
            _make_folder(self._root)
            write_atomically(probe, b"\0" * 4096)
            probe.unlink()
        except OSError as error:
            raise cannot("write to registry folder", self._root.parent, error) from error

    def _is_intact(self, sha256: str) -> bool:
        try:
            self.get(sha256)
        except BlobError:
            return False
        return True

    def _decompressed(self, path: Path, compressed: bytes) -> bytes:
        decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        out = io.BytesIO()
        try:
            with decoder.stream_reader(compressed) as reader:
                while chunk := reader.read(_CHUNK):
                    out.write(chunk)
                    if out.tell() > self._max_bytes:
                        raise BlobCorruptError(
                            f"blob {path} decompresses to more than {self._max_bytes} bytes")
        except zstandard.ZstdError as error:
            raise BlobCorruptError(f"blob {path} is corrupt: it is not valid zstd data") from error
        return out.getvalue()


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sync_folder(folder.parent)
