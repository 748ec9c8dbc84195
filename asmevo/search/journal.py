"""Where the events of a search are made durable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from asmevo.search.attempt import Attempt
from asmevo.search.events import AnyEvent
from asmevo.search.lineage import Node


class Journal(Protocol):
    """Keeps events. What it was given is durable, all of it or nothing, when `write` returns."""

    def write(self, events: Sequence[AnyEvent], attempt: Attempt | None = None,
              node: Node | None = None) -> None:
        """``attempt`` is what an `Attempted` among them is about, unless that is a duplicate;
        ``node`` belongs to a `Committed`."""
        ...
