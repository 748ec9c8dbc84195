"""Every blob of a store, read once: whether it is what its name says, and what it says itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

import zstandard

from asmevo.registry.audit.contents import Derived, derived, finding_of
from asmevo.registry.audit.finding import Finding
from asmevo.registry.blobs import GIB, MAX_WINDOW, BlobStore
from asmevo.registry.errors import BlobCorruptError, BlobError, BlobMissingError, os_reason
from asmevo.registry.statement import Blobs

_CHUNK = 1 << 20


@dataclass(slots=True)
class Stored:
    """What was read; ``size`` is in bytes of content, ``derived`` by blob and table."""

    blobs: int = 0
    size: int = 0
    findings: list[Finding] = field(default_factory=list)
    derived: dict[tuple[str, str], Derived] = field(default_factory=dict)


def read_stored(store: Blobs, names: Iterable[str], kinds: Mapping[str, frozenset[str]], *,
                threads: int | None = None) -> Stored:
    """Read blobs; ``kinds`` are the tables whose rows name a blob, by its name.

    Hashing and decompression let other threads run, so that as many cores are used as there are
    ``threads``. What is large and of no kind is never in memory as a whole.
    """
    done, lock, rest = Stored(), Lock(), iter(names)

    def work() -> None:
        decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        while True:
            with lock:
                sha256 = next(rest, None)
            if sha256 is None:
                return
            wanted = kinds.get(sha256, frozenset())
            size, content, error = _read(store, sha256, decoder, keep=bool(wanted))
            said = {(sha256, table): derived(table, content) for table in wanted
                    if error is None}
            with lock:
                done.blobs += 1
                done.size += size
                done.derived |= said
                if error is not None:
                    done.findings.append(finding_of(error, f"blob {sha256}"))

    workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        for result in [pool.submit(work) for _ in range(workers)]:
            result.result()
    done.findings.sort()
    return done


def _read(store: Blobs, sha256: str, decoder: zstandard.ZstdDecompressor, *,
          keep: bool) -> tuple[int, bytes, BlobError | None]:
    """Size and, to ``keep``, content of a blob, or what is wrong with it."""
    if keep or not isinstance(store, BlobStore):
        try:
            data = store.get(sha256)
        except BlobError as error:
            return 0, b"", error
        return len(data), data, None
    path, size, digest = store.path(sha256), 0, hashlib.sha256()
    buffer = bytearray(_CHUNK)
    view = memoryview(buffer)
    try:
        with path.open("rb", buffering=0) as file, decoder.stream_reader(
                file, read_size=_CHUNK) as reader:
            while length := reader.readinto(buffer):
                digest.update(view[:length])
                size += length
                if size > GIB:
                    return size, b"", BlobCorruptError(f"blob {path} is larger than it may be")
    except FileNotFoundError:
        return 0, b"", BlobMissingError(f"blob {sha256} is missing")
    except OSError as error:
        return 0, b"", BlobError(f"cannot read blob {path}: {os_reason(error)}")
    except zstandard.ZstdError:
        return size, b"", BlobCorruptError(f"blob {path} is corrupt: it is not valid zstd data")
    if digest.hexdigest() != sha256:
        return size, b"", BlobCorruptError(
            f"blob {path} is corrupt: its content does not match its name")
    return size, b"", None
