"""Blobs: content addressing, verification, bounds and failures half-way."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import subprocess
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.durable import write_atomically
from asmevo.registry.audit.stream import is_intact
from asmevo.registry.blobs.store import BlobStore
from asmevo.registry.errors import BlobCorruptError, BlobError, BlobMissingError


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path)


def files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


@given(st.binary(max_size=300_000))
@settings(max_examples=30, deadline=None)
def test_returns_what_was_put(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    store = BlobStore(tmp_path_factory.mktemp("blobs"))
    assert store.get(store.put(data)) == data


def test_file_is_plain_zstd_named_by_content(store: BlobStore, tmp_path: Path) -> None:
    data = b"kernel" * 10_000
    sha256 = store.put(data)
    assert sha256 == hashlib.sha256(data).hexdigest()
    path = tmp_path / "blobs" / sha256[:2] / f"{sha256}.zst"
    assert files(tmp_path) == [path]
    assert zstandard.ZstdDecompressor().decompress(path.read_bytes()) == data


def test_same_content_is_stored_once(store: BlobStore, tmp_path: Path) -> None:
    sha256 = store.put(b"a")
    before = store.path(sha256).stat()
    assert store.put(b"a") == sha256
    after = store.path(sha256).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_putting_again_repairs_a_damaged_copy(store: BlobStore) -> None:
    sha256 = store.put(b"precious")
    store.path(sha256).write_bytes(b"junk")
    store.put(b"precious")
    assert store.get(sha256) == b"precious"


def test_every_damaged_byte_is_noticed(store: BlobStore) -> None:
    data = os.urandom(100)
    sha256 = store.put(data)
    path = store.path(sha256)
    stored = path.read_bytes()
    for position in range(len(stored)):
        damaged = bytearray(stored)
        damaged[position] ^= 0x55
        path.write_bytes(damaged)
        try:
            # A bit that the format ignores may change; content that differs may not get through.
            assert store.get(sha256) == data
        except BlobCorruptError:
            continue
    for length in range(len(stored)):
        path.write_bytes(stored[:length])
        with pytest.raises(BlobCorruptError):
            store.get(sha256)


def test_other_valid_content_is_corrupt(store: BlobStore) -> None:
    sha256, other = store.put(b"one"), store.put(b"two")
    store.path(other).replace(store.path(sha256))
    with pytest.raises(BlobCorruptError, match="does not match its name"):
        store.get(sha256)
    with pytest.raises(BlobMissingError):
        store.get(other)


def test_decompression_is_bounded(tmp_path: Path) -> None:
    store = BlobStore(tmp_path, max_bytes=1 << 20)
    sha256 = store.put(b"x")
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 28))
    assert len(bomb) < 1 << 16
    # The frame's own content size must not matter: hide it, too.
    hidden = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 28))
    for frame in (bomb, hidden):
        store.path(sha256).write_bytes(frame)
        with pytest.raises(BlobCorruptError, match="more than 1048576 bytes"):
            store.get(sha256)
    with pytest.raises(BlobError, match="exceeds the limit"):
        store.put(bytes((1 << 20) + 1))


def test_huge_window_is_refused(store: BlobStore) -> None:
    sha256 = store.put(b"x")
    parameters = zstandard.ZstdCompressionParameters(window_log=30, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    store.path(sha256).write_bytes(compressor.compress(b"x") + compressor.flush())
    with pytest.raises(BlobCorruptError):
        store.get(sha256)


@pytest.mark.parametrize("name", [
    "", "../../etc/passwd", "a" * 63, "A" * 64, "g" * 64, "a" * 64 + "\n", "/" + "a" * 63,
    "\u0661" * 64, "a" * 62 + "/.",
])
def test_only_hashes_name_blobs(store: BlobStore, name: str) -> None:
    with pytest.raises(BlobError, match="is not a SHA-256"):
        store.get(name)


def test_full_disk_leaves_nothing(store: BlobStore, tmp_path: Path,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def full(descriptor: int, data: memoryview) -> int:
        if len(data) > 100:
            return real(descriptor, data[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(BlobError, match="the disk is full"):
        store.put(os.urandom(1000))
    assert files(tmp_path) == []


def test_file_size_limit_leaves_nothing(store: BlobStore, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(BlobError, match="file size limit"):
            store.put(os.urandom(1 << 16))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path) == []


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
    write_atomically(tmp_path / "f", bytes(range(100)))
    assert (tmp_path / "f").read_bytes() == bytes(range(100))


def test_atomic_write_respects_existing_file_and_umask(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_atomically(path, b"new", overwrite=False)
    assert path.read_bytes() == b"old"
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert files(tmp_path) == [path]
    umask = int(subprocess.run(["sh", "-c", "umask"], capture_output=True, check=True).stdout, 8)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("kind", ["pipe", "link", "endless", "folder"])
def test_what_is_no_file_is_no_blob(store: BlobStore, tmp_path: Path, kind: str) -> None:
    """A pipe would keep a reader waiting for ever; `gc` and `list` do not follow links."""
    sha256 = store.put(b"precious")
    path = store.path(sha256)
    path.rename(tmp_path / "real.zst")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "endless" else tmp_path / "real.zst")
    assert not store.exists(sha256)
    assert not is_intact(store, sha256)
    with pytest.raises(BlobMissingError, match="is not a file"):
        store.get(sha256)
    if kind != "folder":
        store.put(b"precious")
        assert store.get(sha256) == b"precious"
        assert not path.is_symlink()
