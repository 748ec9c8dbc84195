"""Compressed bundles against LLVM's own reader and writer, and against damage."""

from __future__ import annotations

import hashlib
import random
import struct
import zlib
from typing import Protocol

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from asmevo.bundle import compressed
from asmevo.bundle.compressed import CompressedBundle, Method, compress, stored_size
from asmevo.bundle.errors import BundleError, ReplacementError


class Llvm(Protocol):
    def compress(self, content: bytes, version: int, method: int, level: int = 3) -> bytes: ...

    def decompress(self, data: bytes) -> bytes: ...


def parse(data: bytes) -> CompressedBundle:
    return CompressedBundle.parse(memoryview(data))


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("version", [2, 3])
def test_reads_what_llvm_writes(llvm: Llvm, bundle: bytes, version: int, method: Method) -> None:
    data = llvm.compress(bundle, version, method)
    ours = parse(data + bytes(100))
    assert ours == CompressedBundle(version, method, len(data), bundle)
    assert ours.describe() == f"CCOB v{version} {method.name.lower()}"


@pytest.mark.parametrize(("method", "level"), [
    (Method.ZSTD, 3), (Method.ZSTD, 19), (Method.ZLIB, 6), (Method.ZLIB, 9)])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_llvm_reads_what_we_write(llvm: Llvm, bundle: bytes, version: int, method: Method,
                                  level: int) -> None:
    data = compress(bundle, version, method, level)
    assert llvm.decompress(data) == bundle
    assert parse(data).content == bundle


def test_headers_equal_llvm(llvm: Llvm, bundle: bytes) -> None:
    for version, size in ((2, 24), (3, 32)):
        ours, theirs = compress(bundle, version, Method.ZLIB, 6), llvm.compress(
            bundle, version, Method.ZLIB, 6)
        assert (ours[:8], ours[size - 16:size]) == (theirs[:8], theirs[size - 16:size])


@pytest.mark.parametrize("method", Method)
def test_version_1_ends_with_its_stream(bundle: bytes, method: Method) -> None:
    data = compress(bundle, 1, method, 3)
    assert parse(data + b"CCOB and more").size == len(data)
    assert stored_size(memoryview(data + b"CCOB and more")) == len(data)


@given(st.binary(max_size=3000), st.sampled_from([1, 2, 3]), st.sampled_from(Method))
def test_any_content(content: bytes, version: int, method: Method) -> None:
    data = compress(content, version, method, 3)
    assert parse(data) == CompressedBundle(version, method, len(data), content)


def test_frame_of_several_blocks_and_a_checksum() -> None:
    content = random.Random(1).randbytes(300_000) + bytes(500_000)
    stream = zstandard.ZstdCompressor(write_checksum=True).compress(content)
    digest = hashlib.md5(content).digest()[:8]
    data = struct.pack("<4sHHI", b"CCOB", 1, 1, len(content)) + digest + stream
    assert parse(data + b"tail").size == len(data)


def test_recompression_takes_the_strongest_level_it_needs() -> None:
    words = [random.Random(i).randbytes(24) for i in range(64)]
    content = b"".join(random.Random(7).choices(words, k=4000))
    ours = parse(compress(content, 3, Method.ZSTD, 3))
    weak, strong = (len(compress(content, 3, Method.ZSTD, level)) for level in (3, 19))
    assert strong < weak
    assert len(ours.recompressed(content, None)) == weak
    assert len(ours.recompressed(content, weak - 1)) < weak
    with pytest.raises(ReplacementError, match=r"CCOB v3 zstd\), and there is room for 10"):
        ours.recompressed(content, 10)


def test_content_too_large_for_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 1 << 32

    with pytest.raises(ReplacementError, match="too large for version 2"):
        compress(Huge(b"abc"), 2, Method.ZLIB, 1)


CONTENT = b"content " * 20
STREAM = zstandard.ZstdCompressor().compress(CONTENT)
DIGEST = hashlib.md5(CONTENT).digest()[:8]


def v3(stream: bytes = STREAM, *, version: int = 3, method: int = 1, size: int | None = None,
       expected: int = len(CONTENT), digest: bytes = DIGEST) -> bytes:
    size = 32 + len(stream) if size is None else size
    return struct.pack("<4sHHQQ", b"CCOB", version, method, size, expected) + digest + stream


FRAME_START = STREAM[:zstandard.frame_header_size(STREAM)]
RESERVED = bytearray(STREAM)
RESERVED[zstandard.frame_header_size(STREAM)] |= 6
HOSTILE = {
    "magic": (b"CCOC" + v3()[4:], "magic string"),
    "header": (v3()[:7], "truncated"),
    "header of the version": (v3()[:31], "truncated"),
    "version 0": (v3(version=0), "version 0 .* is not one of 1, 2, 3"),
    "version 4": (v3(version=4), "version 4"),
    "method": (v3(method=2), "unknown method 2"),
    "size": (v3(size=1 << 63), "claims 9223372036854775808 bytes"),
    "size below the header": (v3(size=31), "claims 31 bytes"),
    "expected": (v3(expected=1 << 62), "more than .* 512 MiB"),
    "ratio": (v3(expected=len(STREAM) * 4096 + 1), "more than 4096 times"),
    "empty blocks": (v3(FRAME_START + bytes(3 * 1027)), "too many blocks"),
    "other expected": (v3(expected=161), "holds 160 bytes, not the 161"),
    "hash": (v3(digest=bytes(8)), "does not match its hash"),
    "behind": (v3(STREAM + b"\0"), "has 1 bytes behind"),
    "stream": (v3(STREAM[:-4]), "truncated"),
    "no stream": (v3(b"", expected=0), "damaged"),
    "reserved block": (v3(bytes(RESERVED)), "reserved block"),
    "not zstd": (v3(b"x" * 40), "damaged"),
    "zlib stream": (v3(zlib.compress(CONTENT)[:-5], method=0), "truncated"),
    "not zlib": (v3(b"x" * 40, method=0), "damaged"),
    "zlib overlong": (v3(zlib.compress(CONTENT), method=0, expected=159), "holds more than"),
    "zlib short": (v3(zlib.compress(CONTENT), method=0, expected=161), "holds 160 bytes"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile(case: str) -> None:
    data, message = HOSTILE[case]
    with pytest.raises(BundleError, match=message):
        parse(data)


@pytest.mark.parametrize("method", Method)
def test_bomb_is_not_inflated(method: Method) -> None:
    bomb = bytes(64 << 20)
    stream = (zstandard.ZstdCompressor(write_content_size=False).compress(bomb)
              if method is Method.ZSTD else zlib.compress(bomb, 9))
    with pytest.raises(BundleError):
        parse(v3(stream, method=method, expected=1000))


def test_window_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=20, write_content_size=False)
    content = random.Random(3).randbytes(3 << 20)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    stream = compressor.compress(content) + compressor.flush()
    data = v3(stream, expected=len(content), digest=hashlib.md5(content).digest()[:8])
    assert parse(data).content == content
    monkeypatch.setattr(compressed, "WINDOW_LIMIT", 1 << 19)
    with pytest.raises(BundleError, match="damaged"):
        parse(data)
