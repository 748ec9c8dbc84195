"""Workers as actors of a Ray cluster: the same work on several machines."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Generator
from typing import Any

from asmevo.collection import collect_seldom
from asmevo.errors import AsmEvoError
from asmevo.search.attempt import Assignment, Attempt, Finish, Lost, Step
from asmevo.search.executor import ExplorerFactory, reason_of

log = logging.getLogger(__name__)


class RayError(AsmEvoError):
    """Ray is not installed, or no cluster can be used."""


class Actor:
    """A worker on some machine of the cluster. Results are asked for one by one."""

    def __init__(self, factory: ExplorerFactory) -> None:
        collect_seldom()
        self._explorer = factory()
        self._running: Generator[Attempt, None, Finish] | None = None
        self._number = -1

    def start(self, assignment: Assignment) -> None:
        self._number = assignment.number
        self._running = self._explorer.explore(assignment)

    def step(self, number: int) -> Step | None:
        """The next result of an assignment; ``None`` once it is over."""
        if self._running is None or number != self._number:
            return None
        try:
            return next(self._running)
        except StopIteration as stop:
            self._running = None
            finish: Finish = stop.value
            return finish
        except Exception as error:
            log.exception("an assignment failed")
            self._running = None
            return Lost(number, reason_of(error))


class RayExecutor:
    """One actor a worker. All results of an assignment are asked for at once, so that a worker
    goes on without waiting until each is taken.

    Joins the cluster at ``address`` (``auto``: the one this machine belongs to), or starts one on
    this machine with ``cpus`` of its processors where ``address`` is ``None``.
    """

    def __init__(self, factory: ExplorerFactory, workers: int, *, address: str | None = None,
                 cpus: int | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise RayError("search.executor=ray needs Ray: pip install 'asmevo[ray]'") from None
        self._ray: Any = ray
        self._factory = factory
        self._actors: dict[int, Any] = {}
        self._pending: dict[int, deque[Any]] = {}
        self._numbers: dict[int, int] = {}
        self._started = not ray.is_initialized()
        if self._started:
            try:
                ray.init(address=address, num_cpus=cpus if address is None else None,
                         include_dashboard=False if address is None else None,
                         log_to_driver=False, configure_logging=False)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise RayError(f"no Ray cluster at {address}: {error}") from error
        # A share of a processor each: how many workers there are is the user's decision.
        total = float(self._ray.cluster_resources().get("CPU", 1.0))
        share = min(1.0, total / max(workers, 1))
        self._make: Any = ray.remote(num_cpus=share, max_restarts=0)(Actor)

    def give(self, assignment: Assignment) -> None:
        worker = assignment.worker
        if worker not in self._actors:
            self._actors[worker] = self._make.remote(self._factory)
        actor = self._actors[worker]
        self._numbers[worker] = assignment.number
        actor.start.remote(assignment)
        # One more for the `Finish`; what is asked for behind it answers at once.
        wanted = max(0, assignment.attempts - assignment.done) + 1
        self._pending[worker] = deque(
            actor.step.remote(assignment.number) for _ in range(wanted))

    def take(self, worker: int, timeout: float) -> Step | None:
        pending = self._pending[worker]
        if not pending:
            return Lost(self._numbers[worker], "the worker gave no end to its assignment")
        try:
            step: Step | None = self._ray.get(pending[0], timeout=timeout)
        except self._ray.exceptions.GetTimeoutError:
            return None
        except self._ray.exceptions.RayError as error:
            log.warning("a worker was lost: %s", error)
            self.restart(worker)
            return Lost(self._numbers[worker], f"the actor is gone ({type(error).__name__})")
        pending.popleft()
        if step is None:
            return Lost(self._numbers[worker], "the worker forgot its assignment")
        return step

    def restart(self, worker: int) -> None:
        self._pending.pop(worker, None)
        actor = self._actors.pop(worker, None)
        if actor is not None:
            with contextlib.suppress(Exception):
                self._ray.kill(actor)

    def close(self) -> None:
        for worker in tuple(self._actors):
            self.restart(worker)
        if self._started and self._ray.is_initialized():
            self._ray.shutdown()
