"""Where assignments are carried out: in this process, in worker processes, or on a Ray cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Protocol

from asmevo.search.attempt import Assignment, Attempt, Finish, Lost, Step

log = logging.getLogger(__name__)


class Explorer(Protocol):
    """Carries out assignments, one at a time; a `Workbench` is one."""

    def explore(self, assignment: Assignment) -> Generator[Attempt, None, Finish]: ...


ExplorerFactory = Callable[[], Explorer]


class Executor(Protocol):
    """Workers, each with at most one assignment, whose results wait until they are asked for.

    An attempt that a worker has made is not lost when the worker is: it can still be taken.
    """

    def give(self, assignment: Assignment) -> None:
        """Let its worker carry it out, instead of what it is at."""
        ...

    def take(self, worker: int, timeout: float) -> Step | None:
        """The worker's next result: attempts, then a `Finish`, or else `Lost`.

        ``None`` when there is none after so many seconds.
        """
        ...

    def restart(self, worker: int) -> None:
        """End a worker that hangs, whatever it is doing; it is started anew when it is given
        something."""
        ...

    def close(self) -> None:
        """End all workers at once."""
        ...


def reason_of(error: BaseException) -> str:
    """One line on what a worker failed with."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class InlineExecutor:
    """Workers in this process, each going on only while its next result is asked for."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._running: dict[int, tuple[int, Generator[Attempt, None, Finish]]] = {}

    def give(self, assignment: Assignment) -> None:
        self.restart(assignment.worker)
        self._running[assignment.worker] = (
            assignment.number, self._explorer.explore(assignment))

    def take(self, worker: int, timeout: float) -> Step | None:
        number, running = self._running[worker]
        try:
            return next(running)
        except StopIteration as stop:
            del self._running[worker]
            finish: Finish = stop.value
            return finish
        except Exception as error:
            # As in a process of its own: what goes wrong costs one attempt, not the search.
            log.exception("worker %d failed", worker)
            del self._running[worker]
            return Lost(number, reason_of(error))

    def restart(self, worker: int) -> None:
        _, running = self._running.pop(worker, (0, None))
        if running is not None:
            running.close()

    def close(self) -> None:
        for worker in tuple(self._running):
            self.restart(worker)
