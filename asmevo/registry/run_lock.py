"""Who is at a run: at most one process, and nobody once that process is gone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from asmevo.registry.errors import RegistryError, cannot


class RunLock:
    """Held from `acquire` to `release`; the operating system releases that of a killed process."""

    def __init__(self, registry: Path, run_id: str) -> None:
        self._path = registry / "locks" / f"{run_id}.lock"
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Whether the run is ours now: ``False`` when another process is at it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise cannot("lock a run with", self._path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            raise cannot("lock a run with", self._path, error) from error
        self._descriptor = descriptor
        return True

    def demand(self, run_id: str) -> None:
        """`acquire`, or raise `RegistryError`."""
        if not self.acquire():
            raise RegistryError(f"run '{run_id}' is still being worked on by another process")

    def release(self) -> None:
        """The file stays: removing it would let two processes hold locks of the same name."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
