"""Workers as processes of this machine, one each, so that none can harm another."""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing
import pickle
import queue
import signal
import threading
from collections.abc import Generator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from asmevo.collection import collect_seldom
from asmevo.search.attempt import Assignment, Attempt, Finish, Lost, Step
from asmevo.search.executor import ExplorerFactory, reason_of

log = logging.getLogger(__name__)


class ProcessExecutor:
    """Spawned processes with an explorer of their own, each behind a pipe of its own.

    A worker that dies (out of memory, SIGKILL) breaks its own pipe and nobody else's: what it sent
    before can be taken, then comes `Lost`, and the next assignment starts a new process.
    """

    def __init__(self, factory: ExplorerFactory, workers: int) -> None:
        self._factory = factory
        self._workers: dict[int, _Worker] = {}
        self._count = workers
        atexit.register(self.close)

    def give(self, assignment: Assignment) -> None:
        worker = self._workers.get(assignment.worker)
        if worker is None or not worker.alive:
            self.restart(assignment.worker)
            worker = self._workers[assignment.worker] = _Worker(self._factory)
        worker.give(assignment)

    def take(self, worker: int, timeout: float) -> Step | None:
        step = self._workers[worker].take(timeout)
        if isinstance(step, Lost):
            self.restart(worker)
        return step

    def restart(self, worker: int) -> None:
        gone = self._workers.pop(worker, None)
        if gone is not None:
            gone.end()

    def pids(self) -> dict[int, int]:
        """The process of each worker that has one."""
        return {number: pid for number, worker in self._workers.items()
                if (pid := worker.process.pid) is not None}

    def close(self) -> None:
        atexit.unregister(self.close)
        for worker in self._workers.values():
            worker.process.terminate()
        for number in tuple(self._workers):
            self.restart(number)


class _Worker:
    """One process, its pipe, and a thread that empties it: a worker need not wait to be asked."""

    def __init__(self, factory: ExplorerFactory) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=serve, args=(factory, theirs), name="asmevo-worker")
        self.process.start()
        theirs.close()
        self._steps: queue.SimpleQueue[Step | None] = queue.SimpleQueue()
        self._number = -1
        self._dead = False
        threading.Thread(target=self._receive, daemon=True).start()

    @property
    def alive(self) -> bool:
        return not self._dead and self.process.is_alive()

    def give(self, assignment: Assignment) -> None:
        self._number = assignment.number
        # A worker that is gone: its `Lost` is on its way, or made up in `take`.
        with contextlib.suppress(OSError):
            self._connection.send(assignment)

    def take(self, timeout: float) -> Step | None:
        while True:
            try:
                step = self._steps.get(timeout=timeout)
            except queue.Empty:
                return None
            if step is None:
                self._dead = True
                self.process.join(timeout=5)
                code = self.process.exitcode
                how = (f"was ended by signal {-code}" if code is not None and code < 0
                       else f"ended with status {code}")
                return Lost(self._number, f"the worker process {how}")
            # Left over from what it was at before it was given something else.
            if step.assignment == self._number:
                return step

    def end(self) -> None:
        self.process.terminate()
        self.process.join(timeout=2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(timeout=5)
        self._connection.close()

    def _receive(self) -> None:
        try:
            while True:
                step = pickle.loads(self._connection.recv_bytes())  # noqa: S301 - our own child
                self._steps.put(step)
        except Exception as error:
            # The end of the pipe, or half a message: either way nothing more can come.
            if not isinstance(error, EOFError | OSError):
                log.warning("what a worker sent cannot be read: %s", error)
            self._steps.put(None)


def serve(factory: ExplorerFactory, connection: Connection) -> None:
    """Carry out assignments until the pipe is closed: the body of a worker process."""
    # Ctrl-C reaches the whole process group; the controller alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_seldom()
    explorer = factory()
    pending: Assignment | None = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            assignment: Assignment = pending or connection.recv()
            pending = None
            try:
                running = explorer.explore(assignment)
                pending = _carried_out(running, connection)
            except (EOFError, OSError):
                raise
            except Exception as error:
                log.exception("an assignment failed")
                connection.send(Lost(assignment.number, reason_of(error)))


def _carried_out(
    running: Generator[Attempt, None, Finish], connection: Connection
) -> Assignment | None:
    """Send each result; the next assignment, when it comes before this one is done."""
    while True:
        try:
            connection.send(next(running))
        except StopIteration as stop:
            connection.send(stop.value)
            return None
        if connection.poll():
            running.close()
            following: Assignment = connection.recv()
            return following
