"""A journal for searches that need not outlive their process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from asmevo.search.attempt import Attempt
from asmevo.search.events import AnyEvent
from asmevo.search.lineage import Node


@dataclass
class MemoryJournal:
    """Keeps events for as long as the process lives."""

    entries: list[tuple[AnyEvent, Attempt | None, Node | None]] = field(default_factory=list)

    def write(self, events: Sequence[AnyEvent], attempt: Attempt | None = None,
              node: Node | None = None) -> None:
        self.entries += [(event, attempt, node) for event in events]

    @property
    def events(self) -> tuple[AnyEvent, ...]:
        return tuple(event for event, _, _ in self.entries)
