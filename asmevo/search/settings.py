"""How to search, as configured."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.errors import AsmEvoError
from asmevo.search.budget import Budget
from asmevo.search.executor import Executor, InlineExecutor, ProcessExecutor, WorkbenchFactory
from asmevo.search.planner import Planner
from asmevo.search.workbench import Workbench


class SearchError(AsmEvoError):
    """A search setting makes no sense."""


@dataclass(frozen=True)
class Search:
    """A planner, its budget, and where candidates are judged.

    ``executor`` is ``inline`` (this process) or ``processes`` (``workers`` spawned processes).
    ``seed`` decides everything random: the conditions of verification and the proposer.
    """

    planner: Planner
    budget: Budget
    executor: str = "inline"
    workers: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.executor not in ("inline", "processes"):
            raise SearchError(
                f"search.executor must be 'inline' or 'processes', not '{self.executor}'"
            )
        if self.workers < 1:
            raise SearchError(f"search.workers must be at least 1, not {self.workers}")
        if self.seed < 0:
            raise SearchError(f"search.seed must not be negative, not {self.seed}")

    def start_executor(self, workbench: Workbench, factory: WorkbenchFactory) -> Executor:
        """``factory`` makes a workbench like ``workbench`` in another process."""
        if self.executor == "inline":
            return InlineExecutor(workbench)
        return ProcessExecutor(factory, self.workers)
