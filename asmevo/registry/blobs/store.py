"""Content-addressed blobs: zstd files named by the SHA-256 of their uncompressed content."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from asmevo.durable import make_folder, sync_folder, write_atomically
from asmevo.registry.blobs.format import (
    GIB,
    MAX_WINDOW,
    blob_name,
    blob_of,
    checked_size,
    compressed,
    is_sha256,
    most_stored,
    verified,
)
from asmevo.registry.errors import BlobError, BlobMissingError, cannot, os_reason

__all__ = ["GIB", "MAX_WINDOW", "BlobStore", "Blobs", "StagedBlobs", "StoredBlob", "is_sha256"]

FRESH_S = 3600.0
"""A blob that is put again is marked as used once it was not for this long, seconds."""


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A file of a store: ``size`` in bytes as stored, ``modified`` in seconds since 1970.

    ``sha256`` is None for what a writer that was killed left half-way.
    """

    name: str
    sha256: str | None
    size: int
    modified: float


class Blobs(Protocol):
    """A store of blobs. Every method raises `BlobError`, also for what is no SHA-256."""

    @property
    def place(self) -> str:
        """What names the store in messages; never with a password."""

    def put(self, data: bytes) -> str:
        """Store ``data`` and return its SHA-256; a damaged copy is replaced."""

    def get(self, sha256: str) -> bytes:
        """The content, verified. Raises `BlobMissingError` or `BlobCorruptError`."""

    def exists(self, sha256: str) -> bool:
        """Whether there is such a blob, intact or not."""

    def size(self, sha256: str) -> int:
        """Its size in bytes as stored."""

    def list(self) -> Iterator[StoredBlob]:
        """All blobs and unfinished ones, in no order."""

    def delete(self, stored: StoredBlob) -> None:
        """Remove what `list` named; nothing if it is gone already."""

    def check_writable(self) -> None:
        """Prove that blobs can be put."""


class BlobStore:
    """Blobs in a local folder, ``<folder>/aa/<sha256>.zst``.

    A blob appears complete or not at all (temporary file, fsync, rename, fsync of its folder), is
    stored once whatever its number of uses, and is verified at every read. What `put` returned
    survives a power failure. ``max_bytes`` bounds the uncompressed size of one blob; a larger one
    is refused when written and counts as corrupt when read.
    """

    def __init__(self, root: Path, *, folder: str = "blobs", max_bytes: int = GIB) -> None:
        self._root = root / folder
        self._max_bytes = max_bytes
        self._durable: set[Path] = set()

    @property
    def place(self) -> str:
        return str(self._root)

    def path(self, sha256: str) -> Path:
        """Where the blob is or would be. Raises `BlobError` unless ``sha256`` is a SHA-256."""
        return self._root / blob_name(sha256)

    def put(self, data: bytes) -> str:
        checked_size(data, self._max_bytes)
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(sha256)
        try:
            if not (self._is_intact(sha256) and self._settled(path)):
                self._make_durable(path.parent)
                if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                    path.unlink()  # a link or pipe, which is no blob
                write_atomically(path, compressed(data))
        except OSError as error:
            raise BlobError(f"cannot write blob {path}: {os_reason(error)}") from error
        return sha256

    def open(self, sha256: str) -> BinaryIO:
        """The file of a blob. A link, pipe or folder of its name is none: `gc` and `list` do not
        count it either, and to open a pipe would be to wait for its writer. Raises `BlobError`.
        """
        path = self.path(sha256)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return os.fdopen(descriptor, "rb")
            os.close(descriptor)
        except FileNotFoundError as error:
            if not self._root.is_dir():
                raise BlobError(f"there is no folder of blobs at {self._root}") from error
            raise BlobMissingError(f"blob {sha256} is missing from {self._root}") from error
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise BlobError(f"cannot read blob {path}: {os_reason(error)}") from error
        raise BlobMissingError(f"blob {path} is not a file")

    def get(self, sha256: str) -> bytes:
        path = self.path(sha256)
        try:
            with self.open(sha256) as file:
                stored = file.read(most_stored(self._max_bytes) + 1)
        except OSError as error:
            raise BlobError(f"cannot read blob {path}: {os_reason(error)}") from error
        return verified(stored, sha256, path, max_bytes=self._max_bytes)

    def exists(self, sha256: str) -> bool:
        try:
            self.size(sha256)
        except BlobMissingError:
            return False
        return True

    def size(self, sha256: str) -> int:
        path = self.path(sha256)
        try:
            found = path.lstat()
        except FileNotFoundError as error:
            raise BlobMissingError(f"blob {sha256} is missing from {self._root}") from error
        except OSError as error:
            raise BlobError(f"cannot read blob {path}: {os_reason(error)}") from error
        if not stat.S_ISREG(found.st_mode):
            raise BlobMissingError(f"blob {path} is not a file")
        return found.st_size

    def list(self) -> Iterator[StoredBlob]:
        try:
            for folder in (self._root, *_folders(self._root)):
                for entry in os.scandir(folder):
                    name = os.path.relpath(entry.path, self._root)
                    sha256 = blob_of(name)
                    if sha256 is None and not entry.name.startswith("."):
                        continue  # none of ours
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # another process has removed it since
                    if entry.is_file(follow_symlinks=False):
                        yield StoredBlob(name, sha256, found.st_size, found.st_mtime)
        except FileNotFoundError:
            return
        except OSError as error:
            raise BlobError(f"cannot list the blobs in {self._root}: {os_reason(error)}") from error

    def delete(self, stored: StoredBlob) -> None:
        path = self._root / stored.name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise BlobError(f"cannot remove blob {path}: {os_reason(error)}") from error

    def check_writable(self) -> None:
        """Write and remove a small file; raises `RegistryError` when that fails."""
        probe = self._root / f".probe-{secrets.token_hex(8)}"
        try:
            self._make_durable(self._root)
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

    def _settled(self, path: Path) -> bool:
        """Make a blob that is there one that stays; false if it is gone now.

        Another process may have renamed it just now and not have come to fsync its folder; and it
        counts as used now, so that `gc` leaves it alone for a while.
        """
        self._make_durable(path.parent)
        try:
            if time.time() - path.stat().st_mtime > FRESH_S:
                os.utime(path)
        except FileNotFoundError:
            return False
        except PermissionError:
            pass  # another user's
        sync_folder(path.parent)
        return True

    def _make_durable(self, folder: Path) -> None:
        """Make a folder of the store, with durable names of it and of all that is made above it.

        Names within the registry are made durable in any case, but once: another process may have
        made the folder just now and not have come to that.
        """
        if folder in self._durable and folder.is_dir():
            return
        make_folder(folder)
        for made in {self._root, folder} - self._durable:
            sync_folder(made.parent)
            self._durable.add(made)


def _folders(root: Path) -> Iterator[Path]:
    for entry in os.scandir(root):
        if len(entry.name) == 2 and entry.is_dir(follow_symlinks=False):
            yield Path(entry.path)


class StagedBlobs:
    """The blobs that one transaction is going to refer to.

    They are put before it begins, so that it is short. Once it has begun, `confirm` sees to it that
    all of them are still there: `gc` deletes within transactions of its own only, and two writing
    transactions never overlap, so what is there then stays until the reference is committed.
    """

    def __init__(self, store: Blobs) -> None:
        self._store = store
        self._data: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        """As `Blobs.put`."""
        sha256 = self._store.put(data)
        self._data[sha256] = data
        return sha256

    def get(self, sha256: str) -> bytes:
        """As `Blobs.get`."""
        return self._store.get(sha256)

    def confirm(self) -> None:
        """Put again what is gone. To be called within the transaction."""
        for sha256, data in self._data.items():
            if not self._store.exists(sha256):
                self._store.put(data)
