"""Searches in processes of their own, which can fail and be killed without harm to one another."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asmevo
from asmevo.durable import write_atomically
from asmevo.report.result import SCHEMA, Status

log = logging.getLogger(__name__)

# A search that ended by itself; one that failed or was interrupted is made again.
ENDED = frozenset({Status.COMMITTED.value, Status.NONE.value})

_RESULT, _NAME, _OUTPUT = "result.json", "search", "output.txt"
_CONFIG = f"{_NAME}.yaml"
_TERMINATION_SECONDS = 30.0

# The content of a result.json
Found = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """The search for one kernel: a primary configuration, which is found beside those of AsmEvo,
    and the run folder. ``overrides`` are of what does not make it another search."""

    name: str
    config: str
    folder: Path
    overrides: tuple[str, ...] = ()

    def finished(self) -> Found | None:
        """The result that an earlier run of the same search left in the folder."""
        try:
            if (self.folder / _CONFIG).read_text(encoding="utf-8") != self.config:
                return None
        except (OSError, ValueError):
            return None
        found = self.result()
        return found if found is not None and found.get("status") in ENDED else None

    def result(self) -> Found | None:
        """What is in the folder now, if it is a result."""
        try:
            found = json.loads((self.folder / _RESULT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and found.get("schema") == SCHEMA else None


def searched(jobs: Sequence[Job], workers: int, seconds: float) -> Generator[
        tuple[Job, Found], None, None]:
    """Each job and its result as they end, ``workers`` at a time; first those that are finished.

    A search that takes more than ``seconds`` is ended. Closing the iterator ends those that run.
    """
    due = []
    for job in jobs:
        if (kept := job.finished()) is not None:
            log.info("%s: kept from an earlier run", job.name)
            yield job, kept
        else:
            due.append(job)
    processes = _Processes(seconds)
    running: dict[Future[Found], Job] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            while due or running:
                while due and len(running) < workers:
                    job = due.pop(0)
                    running[pool.submit(processes.search, job)] = job
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BaseException:  # Ctrl-C, or the iterator is closed
            processes.end()
            raise


@dataclass
class _Processes:
    """The processes of searches that run."""

    seconds: float
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    ending: bool = False

    def search(self, job: Job) -> Found:
        """What the process leaves as its result, or one that says why it left none."""
        job.folder.mkdir(parents=True, exist_ok=True)
        (job.folder / _RESULT).unlink(missing_ok=True)
        write_atomically(job.folder / _CONFIG, job.config.encode())
        began = time.monotonic()
        reason = None
        with (job.folder / _OUTPUT).open("wb") as sink:
            process = subprocess.Popen(
                _command(job), stdin=subprocess.DEVNULL, stdout=sink,
                stderr=subprocess.STDOUT, env=_environment())
            self.running.add(process)
            if self.ending:
                process.terminate()
            try:
                process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                reason = f"did not end within {self.seconds:g} s"
                _end(process)
            finally:
                self.running.discard(process)
        if reason is None and (found := job.result()) is not None:
            return found
        return {"task": "optimize", "status": Status.ERROR.value, "folder": str(job.folder),
                "error": _complaint(job, reason, process.returncode),
                "wall_seconds": time.monotonic() - began}

    def end(self) -> None:
        """Interrupt every search: each keeps in registry and folder what it has."""
        self.ending = True
        for process in tuple(self.running):
            process.terminate()


def _command(job: Job) -> list[str]:
    folder = job.folder.resolve()
    quoted = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    return [sys.executable, "-m", "asmevo", f"--config-dir={folder}", f"--config-name={_NAME}",
            f"hydra.run.dir='{quoted}'", "hydra.output_subdir=null", "hydra.job.name=asmevo",
            "+hydra.job_logging.handlers.console.level=WARNING", *job.overrides]


def _environment() -> dict[str, str]:
    """The same package there, whatever the current folder of this process was when it began."""
    package = str(Path(asmevo.__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{known}" if known else package}


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_TERMINATION_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _complaint(job: Job, reason: str | None, status: int) -> str:
    if reason is None:
        reason = (f"was ended by {signal.Signals(-status).name}" if status < 0
                  else f"ended with status {status} and no result")
    text = (job.folder / _OUTPUT).read_text(encoding="utf-8", errors="replace")
    last = (text.strip().splitlines() or [""])[-1]
    return f"the search {reason}{f': {last}' if last else ''}"
