"""Stopping a search of fakes anywhere, and going on from what is durable."""

from __future__ import annotations

from collections.abc import Sequence

from asmevo.propose.proposal import Direction
from asmevo.search.attempt import Attempt
from asmevo.search.controller import Controller
from asmevo.search.events import AnyEvent
from asmevo.search.lineage import Node
from tests.search.memory_journal import MemoryJournal


class Killed(BaseException):
    """What SIGKILL is to a process: nothing is done on the way out."""


class Dying(MemoryJournal):
    """Is killed when so many events are durable, or just before the next are."""

    def __init__(self, after: int, *, before: bool) -> None:
        super().__init__()
        self._after = after
        self._before = before

    def write(self, events: Sequence[AnyEvent], attempt: Attempt | None = None,
              node: Node | None = None) -> None:
        last = len(self.entries) + len(events) > self._after
        if last and self._before:
            raise Killed
        super().write(events, attempt, node)
        if last:
            raise Killed


def restore(made: Controller, journal: MemoryJournal) -> float:
    """Bring a new controller to where the journal ends; the seconds that were used.

    Attempts and nodes are taken from the journal as they are, the directions of nodes excepted.
    """
    for event, attempt, node in journal.entries:
        made.state.apply(event, attempt=attempt, node=node)
    assert all(n.direction is None or isinstance(n.direction, Direction)
               for n in made.state.lineage)
    return journal.events[-1].seconds if journal.entries else 0.0
