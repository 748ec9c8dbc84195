"""Where assignments are carried out: in this process, or in worker processes."""

from __future__ import annotations

import logging
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

from asmevo.search.attempt import Assignment, Attempt, Report
from asmevo.search.workbench import Workbench

log = logging.getLogger(__name__)

WorkbenchFactory = Callable[[], Workbench]


class Executor(Protocol):
    """Carries out assignments. Reports of one call come in a deterministic order."""

    def run(self, assignments: Sequence[Assignment]) -> Iterator[Report]: ...

    def close(self) -> None: ...


class InlineExecutor:
    """Runs assignments one after the other in this process, reporting each attempt at once."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    def run(self, assignments: Sequence[Assignment]) -> Iterator[Report]:
        for assignment in assignments:
            attempts: list[Attempt] = []
            for attempt in self._workbench.explore(assignment):
                attempts.append(attempt)
                yield Report(assignment, (attempt,), exhausted=False)
            yield Report(assignment, (), _exhausted(assignment, attempts))

    def close(self) -> None:
        """Nothing is held."""


_workbench: Workbench | None = None


def _initialise(factory: WorkbenchFactory) -> None:
    # Ctrl-C reaches the whole process group; the controller alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    global _workbench
    _workbench = factory()


def _explore(assignment: Assignment) -> tuple[Attempt, ...]:
    assert _workbench is not None
    return tuple(_workbench.explore(assignment))


class ProcessExecutor:
    """Runs assignments in parallel worker processes, each with a workbench of its own.

    A worker that dies (out of memory, SIGKILL) costs its assignment: the report carries the fault,
    and the next round starts new workers.
    """

    def __init__(self, factory: WorkbenchFactory, workers: int) -> None:
        self._factory = factory
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def run(self, assignments: Sequence[Assignment]) -> Iterator[Report]:
        pool = self._started()
        reports: list[Report] = []
        try:
            futures = [pool.submit(_explore, assignment) for assignment in assignments]
            for assignment, future in zip(assignments, futures, strict=True):
                try:
                    attempts = future.result()
                    reports.append(Report(assignment, attempts, _exhausted(assignment, attempts)))
                except BrokenProcessPool as error:
                    log.warning("a worker process died: %s", error)
                    reports.append(Report(assignment, (), False, fault=str(error)))
        except BrokenProcessPool as error:
            log.warning("a worker process died before it took an assignment: %s", error)
            done = len(reports)
            reports += [Report(a, (), False, fault=str(error)) for a in assignments[done:]]
        if any(report.fault for report in reports):
            self.close()
        # The fastest candidate first: it should not lose its commit to a slower one that merely
        # came from a worker with a smaller number.
        reports.sort(key=lambda r: (-_fastest(r.attempts), r.assignment.worker))
        yield from reports

    def close(self) -> None:
        """End the workers at once, whatever they are doing."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        processes = multiprocessing.active_children()
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(timeout=5)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._workers, mp_context=multiprocessing.get_context("spawn"),
                initializer=_initialise, initargs=(self._factory,),
            )
        return self._pool


def _fastest(attempts: Sequence[Attempt]) -> float:
    return max((a.speedup or 0.0 for a in attempts if a.passed), default=0.0)


def _exhausted(assignment: Assignment, attempts: Sequence[Attempt]) -> bool:
    """Whether the proposer ran dry: it stopped for neither the limit nor a fast candidate."""
    return len(attempts) < assignment.attempts and _fastest(attempts) < assignment.target
