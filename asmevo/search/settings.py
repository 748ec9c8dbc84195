"""How to search, as configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from asmevo.errors import AsmEvoError
from asmevo.search.budget import Budget
from asmevo.search.controller import Composing
from asmevo.search.executor import Executor, Explorer, ExplorerFactory, InlineExecutor
from asmevo.search.memory import Memory
from asmevo.search.planner import Planner
from asmevo.search.supervision import Supervision, Thresholds

EXECUTORS = ("inline", "processes", "ray")


class SearchError(AsmEvoError):
    """A search setting makes no sense."""


@dataclass(frozen=True)
class Search:
    """A planner, its budget, and where candidates are judged.

    ``executor`` is ``inline`` (this process), ``processes`` (``workers`` spawned processes) or
    ``ray`` (``workers`` actors of the Ray cluster that ``ray`` describes; see `RayExecutor`).
    ``seed`` decides everything random: the conditions of verification and the proposer. ``resume``
    goes on with an earlier run: the newest unfinished one of the same kernel and configuration
    (``True``), or the run of that id. ``memory`` bounds what is remembered (see `Memory`). A worker
    that gives nothing for ``patience`` seconds is ended.
    """

    planner: Planner
    budget: Budget
    executor: str = "inline"
    workers: int = 1
    seed: int = 0
    resume: bool | str = False
    composing: Composing = field(default_factory=Composing)
    supervision: Thresholds = field(default_factory=Thresholds)
    memory: Mapping[str, int] = field(default_factory=dict)
    patience: float = 600.0
    ray: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.executor not in EXECUTORS:
            raise SearchError(
                f"search.executor must be {', '.join(EXECUTORS)}, not '{self.executor}'"
            )
        if self.workers < 1:
            raise SearchError(f"search.workers must be at least 1, not {self.workers}")
        if self.seed < 0:
            raise SearchError(f"search.seed must not be negative, not {self.seed}")
        if not self.patience > 0:
            raise SearchError(f"search.patience must be above 0 seconds, not {self.patience}")
        try:
            Memory(**self.memory)
        except (TypeError, ValueError) as error:
            raise SearchError(f"search.memory: {error}") from error

    def start_executor(self, explorer: Explorer, factory: ExplorerFactory) -> Executor:
        """``factory`` makes an explorer like ``explorer`` in another process."""
        if self.executor == "inline":
            return InlineExecutor(explorer)
        if self.executor == "processes":
            from asmevo.search.processes import ProcessExecutor

            return ProcessExecutor(factory, self.workers)
        from asmevo.search.ray_executor import RayExecutor

        address, cpus = self.ray.get("address"), self.ray.get("cpus")
        return RayExecutor(
            factory, self.workers, address=None if address is None else str(address),
            cpus=None if cpus is None else int(str(cpus)))

    def new_memory(self) -> Memory:
        return Memory(**self.memory)

    def new_supervision(self) -> Supervision:
        return Supervision(self.supervision)
