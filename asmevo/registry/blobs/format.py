"""How a blob is stored, wherever that is: one zstd frame under the SHA-256 of its content."""

from __future__ import annotations

import hashlib
import io
import re

import zstandard

from asmevo.registry.errors import BlobCorruptError, BlobError

GIB = 1 << 30
MAX_WINDOW = 1 << 27
"""Largest zstd window accepted, bytes: bounds the decoder's memory whatever a frame asks for."""

_CHUNK = 1 << 20
_LEVEL = 3
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NAME = re.compile(r"([0-9a-f]{2})/(\1[0-9a-f]{62})\.zst", re.ASCII)


def is_sha256(text: str) -> bool:
    """Whether ``text`` is 64 lower-case hexadecimal digits."""
    return _SHA256.fullmatch(text) is not None


def blob_name(sha256: str) -> str:
    """``aa/<sha256>.zst``. Raises `BlobError` unless ``sha256`` is a SHA-256."""
    if not is_sha256(sha256):
        raise BlobError(f"{sha256[:80]!r} is not a SHA-256 in lower-case hexadecimal")
    return f"{sha256[:2]}/{sha256}.zst"


def blob_of(name: str) -> str | None:
    """The SHA-256 of the blob whose `blob_name` that is; None for any other name."""
    match = _NAME.fullmatch(name)
    return match[2] if match else None


def checked_size(data: bytes, max_bytes: int) -> bytes:
    """``data`` itself. Raises `BlobError` if it is longer than a blob may be."""
    if len(data) > max_bytes:
        raise BlobError(f"a blob of {len(data)} bytes exceeds the limit of {max_bytes} bytes")
    return data


def most_stored(max_bytes: int) -> int:
    """The longest that a blob of ``max_bytes`` bytes can be when stored.

    The zstd format adds at most 3 bytes to each incompressible 128 KiB block (RFC 8878 section
    3.1.1).
    """
    return max_bytes + max_bytes // 1024 + 1024


def compressed(data: bytes) -> bytes:
    """What is stored of a blob."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(data)


def verified(stored: bytes, sha256: str, place: object, *, max_bytes: int) -> bytes:
    """The content of a stored blob; ``place`` names it. Raises `BlobCorruptError`."""
    if len(stored) > most_stored(max_bytes):
        raise BlobCorruptError(f"blob {place} is larger than the limit allows")
    data = _decompressed(stored, place, max_bytes)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise BlobCorruptError(f"blob {place} is corrupt: its content does not match its name")
    return data


def _decompressed(stored: bytes, place: object, max_bytes: int) -> bytes:
    decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    out = io.BytesIO()
    try:
        with decoder.stream_reader(stored) as reader:
            while chunk := reader.read(_CHUNK):
                out.write(chunk)
                if out.tell() > max_bytes:
                    raise BlobCorruptError(
                        f"blob {place} decompresses to more than {max_bytes} bytes")
    except zstandard.ZstdError as error:
        raise BlobCorruptError(f"blob {place} is corrupt: it is not valid zstd data") from error
    return out.getvalue()
