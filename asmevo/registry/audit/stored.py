"""Every blob of a store, read once: whether it is what its name says, and what it says itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from asmevo.registry.audit.contents import Derived, derived, finding_of
from asmevo.registry.audit.finding import Finding
from asmevo.registry.audit.stream import chunks
from asmevo.registry.errors import BlobError
from asmevo.registry.signing.statement import Blobs


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
        while True:
            with lock:
                sha256 = next(rest, None)
            if sha256 is None:
                return
            wanted = kinds.get(sha256, frozenset())
            size, content, error = _read(store, sha256, keep=bool(wanted))
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


def _read(store: Blobs, sha256: str, *, keep: bool) -> tuple[int, bytes, BlobError | None]:
    """Size and, to ``keep``, content of a blob, or what is wrong with it."""
    try:
        if keep:
            data = store.get(sha256)
            return len(data), data, None
        return sum(len(chunk) for chunk in chunks(store, sha256)), b"", None
    except BlobError as error:
        return 0, b"", error
