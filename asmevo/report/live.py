"""The display of a search while it runs: live on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.live import Live

from asmevo.failure import printable
from asmevo.report.live_view import SearchView, clock
from asmevo.report.search_state import Bounds, SearchState
from asmevo.search.events import AnyEvent

_PER_SECOND = 4


class SearchDisplay:
    """An observer of a search that shows it.

    On a terminal (of ``console``, standard error by default) it draws in place and leaves nothing
    behind. Otherwise each commit, and whatever changes the course of the search, is a plain line on
    standard output.
    """

    def __init__(self, title: str, source: str, console: Console | None = None) -> None:
        self.state = SearchState()
        self._console = console or Console(stderr=True)
        self._title = title
        self._source = source
        self._told = 0
        self._since: float | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draws while the block runs."""
        if not self._console.is_terminal:
            yield
            return
        view = SearchView(self.state, self._title, self._source, self.seconds)
        before = sys.stderr
        with Live(console=self._console, get_renderable=lambda: view, transient=True,
                  refresh_per_second=_PER_SECOND), _warnings_above(before):
            yield

    def seconds(self) -> float:
        """Seconds of the budget that are used up now: events are rare, the clock is not."""
        if self._since is None or self.state.ended is not None:
            return self.state.seconds
        return self.state.seconds + time.monotonic() - self._since

    def happened(self, event: AnyEvent) -> None:
        self.state.happened(event)
        self._since = time.monotonic()
        if not self._console.is_terminal:
            self._tell()

    def replay(self, events: Iterable[AnyEvent], bounds: Bounds) -> None:
        """Take the events of earlier sittings into account; they have been told. ``bounds`` are
        this sitting's."""
        for event in events:
            self.state.happened(event)
            self.state.bounds = bounds
        self._told = len(self.state.moments)

    def _tell(self) -> None:
        for moment in self.state.moments[self._told:]:
            sys.stdout.write(f"{clock(moment.seconds):>8}  {moment.attempt:>6}  "
                             f"{moment.kind:<10}  {printable(moment.text)}\n")
        sys.stdout.flush()
        self._told = len(self.state.moments)


@contextmanager
def _warnings_above(before: TextIO) -> Iterator[None]:
    """Log messages go above the live display, whose output would be torn otherwise.

    Rich has put itself in the place of `sys.stderr`; handlers hold on to what was there ``before``.
    """
    handlers = [handler for handler in logging.getLogger().handlers
                if isinstance(handler, logging.StreamHandler) and handler.stream is before]
    for handler in handlers:
        handler.setStream(sys.stderr)
    try:
        yield
    finally:
        for handler in handlers:
            handler.setStream(before)
