"""Blobs wherever `fsspec` reaches: object stores, other machines, memory."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asmevo.registry.blobs.format import (
    GIB,
    blob_name,
    blob_of,
    checked_size,
    compressed,
    most_stored,
    verified,
)
from asmevo.registry.blobs.store import Blobs, BlobStore, StoredBlob
from asmevo.registry.errors import BlobError, BlobMissingError, os_reason

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

WHOLE_PUTS = frozenset({
    "abfs", "abfss", "adl", "az", "gcs", "gs", "memory", "oci", "oss", "s3", "s3a"})
"""Protocols by which a file appears complete or not at all when it is put: object stores."""

_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "created")
"""Where the file systems of `fsspec` say in `info` when a file was written."""


def blobs_at(url: str, *, max_bytes: int = GIB) -> Blobs:
    """The store of blobs at a URL or in a folder; nothing is opened yet. Raises `BlobError`."""
    if "://" not in url and "::" not in url:
        return _local(Path(url), max_bytes)
    parsed = urllib.parse.urlsplit(url)
    if not parsed.scheme:
        raise BlobError("the URL of the blobs names no protocol")
    if parsed.scheme in ("file", "local") and "::" not in url and not parsed.netloc:
        return _local(Path(urllib.parse.unquote(parsed.path)), max_bytes)
    return FsspecBlobs(url, max_bytes=max_bytes)


def _local(folder: Path, max_bytes: int) -> BlobStore:
    folder = folder.absolute()
    return BlobStore(folder.parent, folder=folder.name, max_bytes=max_bytes)


class FsspecBlobs:
    """Blobs under ``<url>/aa/<sha256>.zst``, in the format of `BlobStore`.

    In an object store a blob appears complete or not at all. Elsewhere it is written under another
    name and renamed, which is as atomic and as durable as that place makes it; a torn or lost blob
    is noticed by whoever reads it, since every read is verified. ``simplecache::`` before a URL
    keeps local copies of what was read; a damaged one is reported until that cache is emptied.
    """

    def __init__(self, url: str, *, max_bytes: int = GIB) -> None:
        self._url = url
        self._max_bytes = max_bytes
        self._opened: tuple[int, AbstractFileSystem, str] | None = None
        self.place = without_secrets(url)

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self._url, self._max_bytes)

    def put(self, data: bytes) -> str:
        checked_size(data, self._max_bytes)
        sha256 = hashlib.sha256(data).hexdigest()
        if not self._is_intact(sha256):
            with self._explained("write", sha256):
                self._write(self._path(blob_name(sha256)), compressed(data))
        return sha256

    def get(self, sha256: str) -> bytes:
        path = self._path(blob_name(sha256))
        with self._explained("read", sha256), self._files().open(path, "rb") as file:
            stored = file.read(most_stored(self._max_bytes) + 1)
        return verified(stored, sha256, f"{sha256} in {self.place}", max_bytes=self._max_bytes)

    def exists(self, sha256: str) -> bool:
        try:
            self.size(sha256)
        except BlobMissingError:
            return False
        return True

    def size(self, sha256: str) -> int:
        path = self._path(blob_name(sha256))
        with self._explained("look at", sha256):
            # Not `exists`: that takes any failure for absence.
            return int(self._files().info(path)["size"])

    def list(self) -> Iterator[StoredBlob]:
        with self._explained("list", "the blobs"):
            files = self._files()
            files.invalidate_cache()
            root = self._path("")
            found: dict[str, dict[str, Any]] = files.find(root, detail=True)
            entries = [(path, entry, self._modified(path, entry))
                       for path, entry in found.items()]
        for path, entry, modified in entries:
            name = path[len(root):].lstrip("/") if path.startswith(root) else path
            sha256 = blob_of(name)
            if sha256 is not None or Path(name).name.startswith("."):
                yield StoredBlob(name, sha256, int(entry["size"] or 0), modified)

    def delete(self, stored: StoredBlob) -> None:
        try:
            with self._explained("remove", stored.name):
                self._files().rm_file(self._path(stored.name))
        except BlobMissingError:
            return

    def check_writable(self) -> None:
        with self._explained("write", "a probe"):
            probe = self._path(f".probe-{secrets.token_hex(8)}")
            self._write(probe, bytes(4096))
            self._files().rm_file(probe)

    def _write(self, path: str, stored: bytes) -> None:
        files = self._files()
        if self._protocols(files) & WHOLE_PUTS:
            files.pipe_file(path, stored)
            return
        folder, _, name = path.rpartition("/")
        files.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.{name}.{secrets.token_hex(8)}.tmp"
        try:
            files.pipe_file(temporary, stored)
            files.mv(temporary, path)
        except BaseException:
            # The failure is what to tell of; gc removes what stays behind.
            with suppress(Exception):
                files.rm_file(temporary)
            raise

    def _modified(self, path: str, entry: dict[str, Any]) -> float:
        for key in _MODIFIED:
            if (value := entry.get(key)) is not None:
                return _seconds(value)
        try:
            return _seconds(self._files().modified(path))
        except NotImplementedError:
            return datetime.now(UTC).timestamp()  # of unknown age, hence new

    def _is_intact(self, sha256: str) -> bool:
        try:
            self.get(sha256)
        except BlobError:
            return False
        return True

    def _files(self) -> AbstractFileSystem:
        return self._connection()[0]

    def _path(self, name: str) -> str:
        root = self._connection()[1]
        return f"{root}/{name}" if name else root

    def _connection(self) -> tuple[AbstractFileSystem, str]:
        # Connections and event loops do not survive a fork.
        if self._opened is None or self._opened[0] != os.getpid():
            with self._explained("open", "the store of blobs"):
                from fsspec.core import url_to_fs

                files, root = url_to_fs(self._url, skip_instance_cache=True)
            self._opened = os.getpid(), files, root.rstrip("/")
        return self._opened[1], self._opened[2]

    def _protocols(self, files: AbstractFileSystem) -> set[str]:
        protocol = files.protocol
        return {protocol} if isinstance(protocol, str) else set(protocol)

    @contextmanager
    def _explained(self, action: str, what: str) -> Iterator[None]:
        """Every file system has errors of its own; all of them become a `BlobError`."""
        name = what if not _is_hash(what) else f"blob {what}"
        try:
            yield
        except BlobError:
            raise
        except FileNotFoundError as error:
            raise BlobMissingError(f"{name} is missing from {self.place}") from error
        except NotImplementedError as error:
            raise BlobError(
                f"cannot {action} {name}: {self.place} does not support that") from error
        except ImportError as error:
            raise BlobError(f"{self.place} needs a package that is not installed: "
                            f"{self._said(error)}") from error
        except OSError as error:
            reason = os_reason(error) if error.errno else self._said(error)
            raise BlobError(f"cannot {action} {name} in {self.place}: {reason}") from error
        except Exception as error:
            raise BlobError(
                f"cannot {action} {name} in {self.place}: {self._said(error)}") from error

    def _said(self, error: Exception) -> str:
        """What an exception says, in one line and without what the URL keeps secret."""
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        for secret in secrets_of(self._url):
            said = said.replace(secret, "***")
        return said


def without_secrets(url: str) -> str:
    """A URL for messages: without user, password and query."""
    return "::".join(_bare(part) for part in url.split("::"))


def secrets_of(url: str) -> set[str]:
    """What of a URL may not be shown: user, password and the values of its query, decoded too."""
    found: set[str] = set()
    for part in url.split("::"):
        parsed = urllib.parse.urlsplit(part)
        user, at, _ = parsed.netloc.rpartition("@")
        found |= {user, *user.split(":", 1)} if at else set()
        found |= {value for _, value in urllib.parse.parse_qsl(parsed.query)} | {parsed.query}
    return {text for raw in found for text in (raw, urllib.parse.unquote(raw)) if len(text) > 1}


def _bare(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def _is_hash(text: str) -> bool:
    return len(text) == 64 and " " not in text


def _seconds(value: object) -> float:
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        raise ValueError("a file of an unknown age")
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


def _again(url: str, max_bytes: int) -> FsspecBlobs:
    return FsspecBlobs(url, max_bytes=max_bytes)
