"""What every store of blobs promises, wherever it is."""

from __future__ import annotations

import pickle
import secrets
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest
import zstandard

from asmevo.codeobject.container import CodeObject
from asmevo.registry.blobs.fsspec_store import FsspecBlobs, blobs_at, secrets_of, without_secrets
from asmevo.registry.blobs.store import Blobs, BlobStore, StagedBlobs
from asmevo.registry.errors import (
    BlobCorruptError,
    BlobError,
    BlobMissingError,
    RegistryError,
)
from asmevo.registry.registry import Registry

KINDS = ("local", "folder", "memory", "fsspec-file")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A store in memory of its own."""
    name = f"memory://{secrets.token_hex(4)}/blobs"
    yield name
    fsspec.filesystem("memory").rm("/" + name.split("/")[2], recursive=True, maxdepth=None)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    kind: str = request.param
    if kind == "local":
        return BlobStore(tmp_path, max_bytes=1 << 20)
    if kind == "folder":
        return blobs_at(f"{tmp_path}/elsewhere", max_bytes=1 << 20)
    if kind == "memory":
        return blobs_at(f"memory://{secrets.token_hex(4)}/blobs", max_bytes=1 << 20)
    return FsspecBlobs(f"file://{tmp_path}/blobs", max_bytes=1 << 20)


def damage(store: Blobs, sha256: str, content: bytes) -> None:
    if isinstance(store, BlobStore):
        store.path(sha256).write_bytes(content)
    else:
        assert isinstance(store, FsspecBlobs)
        with fsspec.open(f"{store._url}/{sha256[:2]}/{sha256}.zst", "wb") as file:
            file.write(content)


def test_returns_what_was_put(store: Blobs) -> None:
    for data in (b"", b"a", secrets.token_bytes(100_000), bytes(300_000)):
        sha256 = store.put(data)
        assert store.get(sha256) == data
        assert store.put(data) == sha256
        assert store.exists(sha256)
        assert store.size(sha256) > 0


def test_what_is_missing(store: Blobs) -> None:
    assert not store.exists("0" * 64)
    assert list(store.list()) == []
    store.put(b"another")
    for action in (store.get, store.size):
        with pytest.raises(BlobMissingError, match="is missing from"):
            action("0" * 64)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "a" * 64 + "\n", "/" * 64])
def test_only_hashes_name_blobs(store: Blobs, name: str) -> None:
    actions: tuple[Callable[[str], object], ...] = (store.get, store.exists, store.size)
    for action in actions:
        with pytest.raises(BlobError, match="is not a SHA-256"):
            action(name)


def test_listing_and_deleting(store: Blobs) -> None:
    put = {store.put(bytes([n])) for n in range(5)}
    listed = {blob.sha256: blob for blob in store.list()}
    assert set(listed) == put
    for sha256, blob in listed.items():
        assert sha256 is not None
        assert blob.size == store.size(sha256)
        assert blob.name == f"{sha256[:2]}/{sha256}.zst"
        assert 1.7e9 < blob.modified < 4e9
    gone = listed[min(put)]
    store.delete(gone)
    store.delete(gone)
    assert {blob.sha256 for blob in store.list()} == put - {gone.sha256}


def test_sizes_are_bounded(store: Blobs) -> None:
    with pytest.raises(BlobError, match="exceeds the limit of 1048576 bytes"):
        store.put(bytes((1 << 20) + 1))
    sha256 = store.put(b"x")
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 24))
    damage(store, sha256, bomb)
    with pytest.raises(BlobCorruptError, match="more than 1048576 bytes"):
        store.get(sha256)
    damage(store, sha256, bytes(2 << 20))
    with pytest.raises(BlobCorruptError):
        store.get(sha256)


def test_putting_again_repairs_a_damaged_copy(store: Blobs) -> None:
    sha256 = store.put(b"precious")
    damage(store, sha256, b"junk")
    with pytest.raises(BlobCorruptError):
        store.get(sha256)
    store.put(b"precious")
    assert store.get(sha256) == b"precious"


def test_is_the_same_after_pickling(store: Blobs) -> None:
    sha256 = store.put(b"a")
    assert pickle.loads(pickle.dumps(store)).get(sha256) == b"a"


def test_proves_that_it_takes_blobs(store: Blobs) -> None:
    store.check_writable()
    assert list(store.list()) == []


def test_staged_blobs_come_back(store: Blobs) -> None:
    """What another process deletes before the transaction begins is put again within it."""
    staged = StagedBlobs(store)
    kept, gone = staged.put(b"kept"), staged.put(b"gone")
    store.delete(next(blob for blob in store.list() if blob.sha256 == gone))
    assert not store.exists(gone)
    staged.confirm()
    assert store.get(gone) == b"gone"
    assert store.get(kept) == b"kept"


def test_stores_read_each_other(tmp_path: Path) -> None:
    local = BlobStore(tmp_path)
    remote = FsspecBlobs(f"file://{tmp_path}/blobs")
    assert local.get(remote.put(b"a" * 1000)) == b"a" * 1000
    assert remote.get(local.put(b"b" * 1000)) == b"b" * 1000
    assert {b.sha256 for b in local.list()} == {b.sha256 for b in remote.list()}


def test_files_are_local_blobs(tmp_path: Path) -> None:
    """With fsync and all, which `fsspec` does not do."""
    store = blobs_at(f"file://{tmp_path}/b%20c")
    assert isinstance(store, BlobStore)
    assert store.path(store.put(b"a")).parents[1] == tmp_path / "b c"


def test_a_registry_in_memory(tmp_path: Path, original: CodeObject, url: str) -> None:
    registry = Registry(tmp_path / "r", blobs_url=url)
    registry.check_writable()
    sha256 = registry.record_original(original, "a test")
    assert registry.load_object(sha256) == original.data
    assert not (tmp_path / "r" / "blobs").exists()
    again = pickle.loads(pickle.dumps(registry))
    assert again.load_object(sha256) == original.data
    registry.close()
    again.close()


def test_a_zip_file_can_be_read_only(tmp_path: Path) -> None:
    local = BlobStore(tmp_path)
    sha256 = local.put(b"archived")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(local.path(sha256), f"blobs/{sha256[:2]}/{sha256}.zst")
    store = FsspecBlobs(f"zip://blobs::file://{tmp_path}/a.zip")
    assert store.get(sha256) == b"archived"
    assert store.put(b"archived") == sha256  # it is there already
    for action in (store.check_writable, lambda: store.put(b"new")):
        with pytest.raises(BlobError, match=r"cannot write .*zip://blobs"):
            action()


def test_a_local_cache(tmp_path: Path) -> None:
    local = BlobStore(tmp_path)
    sha256 = local.put(b"far away")
    store = FsspecBlobs(f"simplecache::file://{tmp_path}/blobs")
    assert store.get(sha256) == b"far away"
    local.path(sha256).unlink()
    assert store.get(sha256) == b"far away"
    assert not store.exists(sha256)
    assert local.get(store.put(b"new")) == local.get(store.put(b"new")) == b"new"


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    store = blobs_at("s3://bucket/prefix")
    with pytest.raises(BlobError, match=r"s3://bucket/prefix needs a package .* s3fs"):
        store.get("0" * 64)


@pytest.mark.parametrize("url", ["nonsense://x/y", "://", "ftp://user:pass@127.0.0.1:1/x"])
def test_places_that_are_none(url: str) -> None:
    with pytest.raises(RegistryError) as caught:
        blobs_at(url).check_writable()
    assert "\n" not in str(caught.value)
    assert "pass" not in str(caught.value)


@pytest.mark.parametrize(("url", "shown"), [
    ("s3://key:secret@host:9/b/p?token=hidden", "s3://host:9/b/p"),
    ("simplecache::s3://key:secret@b/p", "simplecache::s3://b/p"),
    ("zip://x::ftp://key:se%40cret@h/p", "zip://x::ftp://h/p"),
    ("s3://bucket/p", "s3://bucket/p"),
])
def test_credentials_are_never_shown(url: str, shown: str) -> None:
    assert without_secrets(url) == shown
    store = FsspecBlobs(url)
    error = store._said(ValueError(f"failed: {url} secret se@cret hidden\nmore"))
    for secret in ("secret", "se%40cret", "hidden", "se@cret"):
        if secret in secrets_of(url):
            assert secret not in error
    assert secrets_of("s3://bucket/p") == set()
