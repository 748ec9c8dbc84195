"""Compressed offload bundles (``CCOB``), in the three versions of the header that Clang wrote.

Layout: LLVM, ``llvm/Object/OffloadBundle.h``. Version 1 (2023) has no size of the whole bundle,
version 2 (2024) adds it in 32 bits, version 3 (2025) has 64-bit sizes.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

import zstandard

from asmevo.bundle.errors import BundleError, ReplacementError

MAGIC = b"CCOB"

# Far above any real bundle (the largest seen have 150 MB); they bound what a hostile header can
# make us allocate.
UNCOMPRESSED_LIMIT = 512 << 20
WINDOW_LIMIT = 128 << 20
RATIO_LIMIT = 4096


class Method(IntEnum):
    """The values of ``llvm::compression::Format``."""

    ZLIB = 0
    ZSTD = 1


@dataclass(frozen=True, slots=True)
class _Layout:
    header: struct.Struct
    has_size: bool


# Magic, version, method, [size of the file,] uncompressed size, hash.
_COMMON = struct.Struct("<4sHH")
_LAYOUTS = {
    1: _Layout(struct.Struct("<4sHHIQ"), has_size=False),
    2: _Layout(struct.Struct("<4sHHIIQ"), has_size=True),
    3: _Layout(struct.Struct("<4sHHQQQ"), has_size=True),
}
_ZSTD_LEVELS = (3, 12, 19)
_ZLIB_LEVELS = (6, 9)
_CHUNK = 64 << 10
_ZSTD_BLOCK_HEADER = 3
_ZSTD_RLE, _ZSTD_RESERVED = 1, 3


@dataclass(frozen=True, slots=True)
class _Header:
    version: int
    method: Method
    size: int | None
    expected: int
    digest: int
    stream: memoryview

    @classmethod
    def parse(cls, data: memoryview) -> _Header:
        if len(data) < _COMMON.size:
            raise BundleError("the compressed offload bundle's header is truncated")
        magic, version, method = _COMMON.unpack_from(data)
        if magic != MAGIC:
            raise BundleError("not a compressed offload bundle: the magic string is missing")
        layout = _LAYOUTS.get(version)
        if layout is None:
            raise BundleError(f"version {version} of compressed offload bundles is not one of "
                              f"{', '.join(map(str, _LAYOUTS))}")
        if method not in list(Method):
            raise BundleError(f"a compressed offload bundle uses the unknown method {method}")
        if len(data) < layout.header.size:
            raise BundleError("the compressed offload bundle's header is truncated")
        *sizes, expected, digest = layout.header.unpack_from(data)[3:]
        size = sizes[0] if sizes else None
        end = len(data) if size is None else size
        if not layout.header.size <= end <= len(data):
            raise BundleError(f"truncated: a compressed offload bundle claims {end} bytes of "
                              f"{len(data)}")
        stream = data[layout.header.size:end]
        if expected > UNCOMPRESSED_LIMIT or expected > RATIO_LIMIT * len(stream):
            raise BundleError(f"a compressed offload bundle claims to hold {expected} bytes in "
                              f"{len(stream)}, more than {RATIO_LIMIT} times as many or "
                              f"{UNCOMPRESSED_LIMIT >> 20} MiB")
        return cls(version, Method(method), size, expected, digest, stream)


@dataclass(frozen=True, slots=True)
class CompressedBundle:
    """A decompressed bundle; ``size`` is the length of its compressed form, header included."""

    version: int
    method: Method
    size: int
    content: bytes

    def describe(self) -> str:
        """A short name for listings, e.g. ``CCOB v3 zstd``."""
        return f"CCOB v{self.version} {self.method.name.lower()}"

    @classmethod
    def parse(cls, data: memoryview) -> CompressedBundle:
        """Decompress the bundle at the start of ``data``, which may extend beyond it.

        Never allocates more than `UNCOMPRESSED_LIMIT` bytes. Raises `BundleError` on unknown
        versions and methods, and on data that is not exactly of the size and hash it states.
        """
        header = _Header.parse(data)
        inflate = _inflate_zstd if header.method is Method.ZSTD else _inflate_zlib
        content, length = inflate(header.stream, header.expected)
        if len(content) != header.expected:
            raise BundleError(f"a compressed offload bundle holds {len(content)} bytes, not the "
                              f"{header.expected} that its header states")
        if header.size is not None and length != len(header.stream):
            raise BundleError(f"a compressed offload bundle has {len(header.stream) - length} "
                              "bytes behind its compressed data")
        if _hash(content) != header.digest:
            raise BundleError("a compressed offload bundle does not match its hash")
        size = _LAYOUTS[header.version].header.size + length
        return cls(header.version, header.method, size, content)

    def recompressed(self, content: bytes, limit: int | None) -> bytes:
        """Other content in the same format, at most ``limit`` bytes long.

        Raises `ReplacementError` when the strongest compression does not make it fit.
        """
        levels = _ZSTD_LEVELS if self.method is Method.ZSTD else _ZLIB_LEVELS
        smallest = 0
        for level in levels:
            result = compress(content, self.version, self.method, level)
            if limit is None or len(result) <= limit:
                return result
            smallest = min(smallest or len(result), len(result))
        raise ReplacementError(f"the changed bundle compresses to {smallest} bytes "
                               f"({self.describe()}), and there is room for {limit}")


def stored_size(data: memoryview) -> int:
    """The length of the bundle at the start of ``data``, without decompressing where it is stated.

    Raises `BundleError`.
    """
    size = _Header.parse(data).size
    return CompressedBundle.parse(data).size if size is None else size


def compress(content: bytes, version: int, method: Method, level: int) -> bytes:
    """A compressed bundle. Raises `ReplacementError` when its sizes do not fit the version."""
    if method is Method.ZSTD:
        # Long-distance matching is what makes similar code objects of one bundle cheap.
        parameters = zstandard.ZstdCompressionParameters.from_level(
            level, source_size=len(content), enable_ldm=True)
        stream = zstandard.ZstdCompressor(compression_params=parameters).compress(content)
    else:
        stream = zlib.compress(content, level)
    layout = _LAYOUTS[version]
    size = (layout.header.size + len(stream),) if layout.has_size else ()
    try:
        header = layout.header.pack(MAGIC, version, method, *size, len(content), _hash(content))
    except struct.error:
        raise ReplacementError(f"a bundle of {len(content)} bytes is too large for version "
                               f"{version} of the compressed format") from None
    return header + stream


def _hash(content: bytes) -> int:
    digest = hashlib.md5(content, usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little")


def _inflate_zlib(stream: memoryview, expected: int) -> tuple[bytes, int]:
    inflater = zlib.decompressobj()
    content = bytearray()
    position = 0
    try:
        while not inflater.eof and position < len(stream):
            # One byte more than expected shows an overlong stream without inflating all of it.
            content += inflater.decompress(stream[position:position + _CHUNK],
                                           expected + 1 - len(content))
            position = min(position + _CHUNK, len(stream))
            if len(content) > expected:
                raise BundleError("a compressed offload bundle holds more than the "
                                  f"{expected} bytes that its header states")
    except zlib.error as error:
        raise BundleError(f"a compressed offload bundle is damaged: {error}") from None
    if not inflater.eof:
        raise BundleError("a compressed offload bundle is truncated")
    return bytes(content), position - len(inflater.unused_data)


def _inflate_zstd(stream: memoryview, expected: int) -> tuple[bytes, int]:
    try:
        stated = zstandard.frame_content_size(stream)
        length = _frame_length(stream, expected)
        if stated not in (expected, -1):
            raise BundleError(f"a compressed offload bundle holds {stated} bytes, not the "
                              f"{expected} that its header states")
        if not expected:
            return b"", length
        # The decompressor never writes more than the size the frame or the limit states.
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT)
        return decompressor.decompress(stream[:length], max_output_size=expected), length
    except (zstandard.ZstdError, ValueError) as error:
        raise BundleError(f"a compressed offload bundle is damaged: {error}") from None


def _frame_length(stream: memoryview, expected: int) -> int:
    """The bytes of the Zstandard frame at the start (RFC 8878, section 3.1.1)."""
    # Compressors make far larger blocks; a frame of empty ones would keep us busy.
    blocks = expected // 64 + 1024
    parameters = zstandard.get_frame_parameters(stream)
    position = zstandard.frame_header_size(stream)
    last = False
    while not last:
        if not blocks:
            raise BundleError("a compressed offload bundle is damaged: too many blocks")
        blocks -= 1
        header = stream[position:position + _ZSTD_BLOCK_HEADER]
        if len(header) < _ZSTD_BLOCK_HEADER:
            raise BundleError("a compressed offload bundle is truncated")
        word = int.from_bytes(header, "little")
        last, kind, size = bool(word & 1), word >> 1 & 3, word >> 3
        if kind == _ZSTD_RESERVED:
            raise BundleError("a compressed offload bundle is damaged: reserved block type")
        position += _ZSTD_BLOCK_HEADER + (1 if kind == _ZSTD_RLE else size)
    position += 4 if parameters.has_checksum else 0
    if position > len(stream):
        raise BundleError("a compressed offload bundle is truncated")
    return position
