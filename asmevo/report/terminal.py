"""What a person sees while a search runs and at its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressDisplay
from rich.text import Text

from asmevo.failure import printable
from asmevo.report.details import details_shown
from asmevo.report.result import Result, Status
from asmevo.report.search_result import search_shown


class Bar:
    """A progress bar on a terminal; nothing at all on a pipe."""

    def __init__(self, title: str, total: int) -> None:
        console = Console(stderr=True)
        self._display = ProgressDisplay(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeRemainingColumn(), TextColumn("{task.fields[exceptions]} exceptions"),
            console=console, transient=True, disable=not console.is_terminal)
        self._exceptions = 0
        self._row = self._display.add_task(title, total=total, exceptions=0)

    def __enter__(self) -> Self:
        self._display.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._display.stop()

    def advance(self, exceptions: int) -> None:
        """One more is done, with so many exceptions."""
        self._exceptions += exceptions
        self._display.update(self._row, advance=1, exceptions=self._exceptions)


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """Says on a terminal what takes so long; nothing at all on a pipe."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(Text(title)):
        yield


def print_result(result: Result) -> None:
    """The table at the end of a run."""
    console = Console(highlight=False)
    if result.details is not None:
        for part in details_shown(result):
            console.print()
            console.print(part)
        return
    for part in search_shown(result):
        console.print()
        console.print(part)
    console.print()
    for name, value in _rows(result):
        # One line each whatever the width: hashes and paths are there to be copied.
        console.print(Text.assemble((f"{name:<16}", "bold"), value), soft_wrap=True)
    for hint in _hints(result):
        console.print(Text(hint, "dim"), soft_wrap=True)


def _rows(result: Result) -> Iterator[tuple[str, str]]:
    yield "kernel", f"{result.kernel} ({result.symbol})"
    yield "status", result.status.value
    if result.task == "optimize":
        yield "attempts", (
            f"{result.attempts} ({result.commits} commits, {result.duplicates} duplicates), "
            f"ended by: {result.stopped}"
        )
        if result.last_fault is not None:
            yield "lost workers", f"{result.faults}, the last: {printable(result.last_fault)}"
    if any(result.counterexamples.values()):
        yield "counterexamples", ", ".join(
            f"{len(names)} {what}" for what, names in result.counterexamples.items() if names)
    if result.speedup is not None:
        yield "best speedup", f"{result.speedup:.4f}x, {result.timing_source} on {result.device}"
    if result.speedup_again is not None:
        yield "timed again", f"{result.speedup_again:.4f}x, in a fresh process"
    yield "original", str(result.original_sha256)
    yield "replacement", result.replacement_sha256 or "none"
    yield "files", str(result.folder)
    if result.report is not None:
        yield "report", result.report
    yield "registry", str(result.registry)
    yield "time", f"{result.wall_seconds:.1f} s"


def _hints(result: Result) -> Iterator[str]:
    if result.status is Status.COMMITTED:
        if result.timing_source == "modelled":
            yield "The speedup comes from a cycle model, not from a GPU."
        yield f"python -m asmevo task=verify candidate={result.replacement_sha256}"
