"""The round-trip gate over many code objects, in parallel processes."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import resource
import signal
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import PurePosixPath

from asmevo.bundle.container import SEPARATOR
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain
from asmevo.errors import AsmEvoError

log = logging.getLogger(__name__)

ToolchainFactory = Callable[[], Toolchain]

# Objects handed to a process before it has asked for them: enough that none waits, few enough that
# memory stays small.
_AHEAD = 3
# In an ELF header, which every object that was found has.
_ABI_VERSION, _FLAGS = 8, slice(48, 52)


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of a corpus; ``name`` is its path there. ``data`` is `None` if unreadable."""

    corpus: str
    name: str
    data: bytes | None
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one object.

    ``architecture`` is the processor's name, `None` when the bytes do not say. ``reason`` is why
    the object is not ``identical`` after its round trip. Of its ``instructions``, ``fallbacks`` are
    kept as data and ``annotations`` have bits in a comment. ``peak_memory`` is the resident memory
    in bytes that its process has needed so far.
    """

    corpus: str
    name: str
    architecture: str | None
    identical: bool
    reason: str | None
    sha256: str | None = None
    instructions: int = 0
    fallbacks: int = 0
    annotations: int = 0
    seconds: float = 0.0
    peak_memory: int = 0

    @property
    def folder(self) -> str:
        """The folder of the file in which the object is."""
        parent = PurePosixPath(self.name.partition(SEPARATOR)[0]).parent.as_posix()
        return "" if parent == "." else parent


def check(entry: Entry, toolchain: Toolchain) -> Outcome:
    """Run the gate on one object; whatever goes wrong becomes the reason."""
    architecture = None

    def failed(reason: str) -> Outcome:
        return Outcome(entry.corpus, entry.name, architecture, False, reason)

    if entry.data is None:
        return failed(entry.unreadable)
    try:
        architecture = _architecture(entry.data)
        report = round_trip(CodeObject.parse(entry.data), toolchain)
    except AsmEvoError as error:
        return failed(str(error))
    except Exception as error:
        # One object that AsmEvo trips over must not hide the other thousands.
        log.exception("%s", entry.name)
        return failed(f"defect of AsmEvo: {type(error).__name__}: {str(error)[:200]}")
    return Outcome(
        entry.corpus, entry.name, architecture, report.identical,
        None if report.identical else
        f"differs at byte {report.first_difference} ({report.section})",
        report.sha256, report.instruction_count, report.fallback_count, report.annotation_count,
        report.seconds,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
    )


def _architecture(data: bytes) -> str | None:
    """What the ELF header says, even when the rest of the file is damaged."""
    flags, version = data[_FLAGS], data[_ABI_VERSION]
    try:
        return Target.from_flags(int.from_bytes(flags, "little"), version)[0].isa
    except CodeObjectError:
        return None


_toolchain: Toolchain | None = None


def _initialise(factory: ToolchainFactory) -> None:
    # Ctrl-C reaches the whole process group; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    global _toolchain
    _toolchain = factory()


def _check(entry: Entry) -> Outcome:
    assert _toolchain is not None
    return check(entry, _toolchain)


def check_all(entries: Iterator[Entry], factory: ToolchainFactory,
              processes: int) -> Iterator[Outcome]:
    """Check objects in parallel; outcomes come as they are ready.

    A process that dies (out of memory, SIGKILL) takes down the others' work in hand. That is done
    again, one object a pool, so that only the guilty object is reported.
    """
    while lost := (yield from _until_one_dies(entries, factory, processes)):
        for entry in lost:
            for dead in (yield from _until_one_dies(iter([entry]), factory, 1)):
                yield Outcome(dead.corpus, dead.name, None, False,
                              "the process that checked it died")


def _until_one_dies(entries: Iterator[Entry], factory: ToolchainFactory,
                    processes: int) -> Generator[Outcome, None, list[Entry]]:
    """Outcomes, and at the end the objects in hand when a process died."""
    pending: dict[Future[Outcome], Entry] = {}
    lost: list[Entry] = []
    with _pool(factory, processes) as pool:
        while not lost:
            while len(pending) < processes * _AHEAD and (
                    entry := next(entries, None)) is not None:
                try:
                    pending[pool.submit(_check, entry)] = entry
                except BrokenProcessPool:
                    lost.append(entry)
                    break
            if not pending:
                break
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                entry = pending.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool as error:
                    log.warning("a worker process died: %s", error)
                    lost.append(entry)
        lost += pending.values()
    return lost


@contextlib.contextmanager
def _pool(factory: ToolchainFactory, processes: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"),
                               initializer=_initialise, initargs=(factory,))
    before = set(multiprocessing.active_children())
    try:
        yield pool
    except BaseException:
        # Ctrl-C, or a caller that wants no more: do not wait for what is in hand.
        for worker in set(multiprocessing.active_children()) - before:
            worker.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
