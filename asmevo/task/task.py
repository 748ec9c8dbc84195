"""What the command line runs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from asmevo.report.result import Result
from asmevo.task.session import Session


@runtime_checkable
class Task(Protocol):
    """One thing to do with a session; the result decides the exit status."""

    def run(self, session: Session) -> Result: ...
