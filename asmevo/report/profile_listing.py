"""What a terminal shows of a profile: totals, the limit, and the hottest windows line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from asmevo.failure import printable
from asmevo.profile.profile import MemoryLevel, StallCause
from asmevo.report.causes import CAUSES, LEVELS

_WIDE = 120        # columns from which notes have a column of their own
_CONTEXT = 2       # lines without stalls that are shown beside one with
_FEWEST_LEFT_OUT = 3
_COMPARED = 78     # columns of a comparison without causes, and of each of these
_COMPARED_CAUSE = 14
_EIGHTHS = " ▏▎▍▌▋▊▉█"

Details = Mapping[str, Any]


def profile_shown(details: Details) -> Iterator[RenderableType]:
    """The parts to print, from top to bottom: launch by launch."""
    for launch in details["launches"]:
        yield _heading(launch)
        yield _totals(launch)
        windows = launch["windows"]
        shown = windows[:details["shown"]]
        for number, window in enumerate(shown, start=1):
            yield WindowListing(window, number, len(windows))
        rest = len(windows) - len(shown)
        yield Text(printable(launch["windows_summary"])
                   + (f"; {rest} more on the page" if rest else ""), "bold")
        yield _files(launch)
    if len(details["launches"]) > 1:
        yield Comparison(details["launches"])


class Comparison:
    """All launches side by side, one row each; causes as far as there is room for them."""

    def __init__(self, launches: Sequence[Details]) -> None:
        self._launches = launches

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        launches = self._launches
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in ("dispatch", "version"):
            table.add_column(heading, overflow="fold")
        for heading in ("clk", "us", "issued", "stalled"):
            table.add_column(heading, justify="right")
        total: Counter[str] = Counter()
        for launch in launches:
            total.update(launch["stalls"])
        room = (options.max_width - _COMPARED) // _COMPARED_CAUSE
        causes = [cause for cause, _ in total.most_common(max(room, 0))]
        for cause in causes:
            table.add_column(cause, justify="right")
        for launch in launches:
            stalls = launch["stalls"]
            table.add_row(
                Text(printable(launch["dispatch"])), Text(printable(launch["version"])),
                f"{launch['cycles']:,}", _micro(launch), f"{launch['issued']:,}",
                f"{sum(stalls.values()):,}", *(f"{stalls.get(cause, 0):,}" for cause in causes))
        yield table


def _micro(launch: Details) -> str:
    value = launch["microseconds"]
    return "-" if value is None else f"{value:,.2f}"


def _heading(launch: Details) -> Text:
    return Text.assemble(
        (printable(launch["dispatch"]), "bold"), f"  {launch['version']}  ",
        (printable(launch["source"]), "bold"), f" on {printable(launch['device'])}")


def _totals(launch: Details) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    if launch["cycles"]:
        micro = launch["microseconds"]
        table.add_row("time", f"{launch['cycles']:,} clk" + (
            "" if micro is None else f", {micro:,.2f} us at {launch['clock_mhz']} MHz")
            + (f"; timed as {timed:,.2f} us with the launch"
               if (timed := launch["timed_microseconds"]) else ""))
    what = {"measured": "samples", "static": "instructions by weight"}.get(
        launch["source"], "instructions")
    table.add_row("issued", f"{launch['issued']:,} {what}"
                  + (f", {launch['waves']:,} waves" if launch["waves"] else ""))
    stalled = sum(launch["stalls"].values())
    if stalled:
        text = Text(f"{stalled:,} clk: ")
        text.append(Text(", ").join(
            Text.assemble((cause, CAUSES[StallCause(cause)].terminal),
                          f" {100 * clk / stalled:.1f} %")
            for cause, clk in launch["stalls"].items()))
        table.add_row("stalled", text)
    if launch["occupancy"] is not None:
        table.add_row("occupancy", Text(launch["occupancy"]["sentence"]))
    placed = launch["roofline"]
    if placed is not None:
        table.add_row("roofline", Text(placed["caption"]))
        busiest = sorted(placed["utilisation"].items(), key=lambda item: -item[1])[:4]
        table.add_row("", Text("busy: " + ", ".join(
            f"{name} {100 * share:.0f} %" for name, share in busiest), "dim"))
    if launch["scope"]:
        table.add_row("scope", Text(printable(launch["scope"])))
    return table


def _files(launch: Details) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name in ("page", "trace"):
        if launch[name] is not None:
            table.add_row(name, Text(printable(launch[name])))
    return table


class WindowListing:
    """The lines of one window, laid out for the width there is."""

    def __init__(self, window: Details, number: int, count: int) -> None:
        self._window = window
        self._number = number
        self._count = count

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        window, width = self._window, options.max_width
        wide = width >= _WIDE
        yield Text()
        yield self._header()
        for text in window["notes"]:
            yield Text(printable(text), "dim")
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
        table.add_column("", no_wrap=True)
        table.add_column("offset", style="dim", no_wrap=True)
        table.add_column("issued", justify="right", style="dim", no_wrap=True)
        table.add_column("stalled", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        table.add_column("cause", no_wrap=True)
        table.add_column("instruction", overflow="fold", ratio=1)
        if wide:
            table.add_column("notes", style="dim", overflow="fold", max_width=36)
        bar = 24 if width >= 150 else 14 if wide else 8
        most = max((sum(line["stalls"].values()) for line in window["lines"]), default=0)
        for line in _elided(window["lines"]):
            if isinstance(line, int):
                table.add_row("", "", "", "", "", "",
                              Text(f"... {line} lines that never stall", "dim"))
                continue
            for cells in _rows(line, most, bar, wide):
                table.add_row(*cells)
        yield table

    def _header(self) -> Text:
        window = self._window
        first, last = window["lines"][0], window["lines"][-1]
        gain = window["recoverable"]
        recoverable = (f"{gain:,} clk recoverable ({100 * window['recoverable_share']:.1f} %)"
                       if gain else "nothing recoverable")
        return Text.assemble(
            (f"window {self._number} of {self._count}", "bold"),
            f"  {first['offset']:#x} to {last['offset']:#x}  ",
            (f"{100 * window['share']:.1f} % of stalls, {recoverable}", "bold"), ", mostly ",
            (window["cause"], CAUSES[StallCause(window["cause"])].terminal))


def _elided(lines: Sequence[Details]) -> Iterator[Details | int]:
    """Lines near one that stalls, starts a block or branches; for others how many there are, unless
    they would take no more room themselves."""
    telling = [n for n, line in enumerate(lines)
               if line["stalls"] or line["block"] or line["target"] is not None]
    kept = {m for n in telling for m in range(n - _CONTEXT, n + _CONTEXT + 1)}
    for left, run in groupby(enumerate(lines), key=lambda item: item[0] not in kept):
        found = [line for _, line in run]
        if left and len(found) >= _FEWEST_LEFT_OUT:
            yield len(found)
        else:
            yield from found


def _rows(line: Details, most: int, bar: int, wide: bool) -> Iterator[list[RenderableType]]:
    flow = Text("│" * (line["depth"] - line["header"]) + ("┌" if line["header"] else ""), "dim")
    if line["label"] is not None or line["sources"]:
        name = printable(line["label"] or "target")
        yield [flow, "", "", "", "", "", Text(f"{name}:", "bold")]
    stalls = line["stalls"]
    stalled = sum(stalls.values())
    cause = next(iter(stalls), None)
    cells: list[RenderableType] = [
        flow, f"{line['offset']:#06x}", f"{line['issued']:,}" if line["issued"] else "",
        f"{stalled:,}" if stalled else "", stall_bar(stalls, most, bar),
        Text(cause or "", CAUSES[StallCause(cause)].terminal if cause else ""),
        Text(printable(line["text"]), "" if line["issued"] else "dim"),
    ]
    notes = _notes(line)
    if wide:
        yield [*cells, Text(notes)]
        return
    yield cells
    if notes:
        yield [flow, "", "", "", "", "", Text(f"  {notes}", "dim")]


def _notes(line: Details) -> str:
    parts = []
    memory = line["memory"]
    if memory is not None:
        levels = [f"{LEVELS[MemoryLevel(level)]} {count:,}"
                  for level, count in memory["lines"].items() if count]
        if levels:
            parts.append("lines: " + " ".join(levels))
        if memory["conflicts"]:
            parts.append(f"conflicts: {memory['conflicts']:,} clk")
    if line["target_offset"] is not None:
        parts.append(f"to {line['target_offset']:#x}")
    return ", ".join(parts)


def stall_bar(stalls: Mapping[str, int], most: int, width: int) -> Text:
    """A bar as long as the line's part of ``most``, in the colours of its causes."""
    bar = Text()
    reached = 0.0
    drawn = 0
    for cause, clk in stalls.items():
        reached += width * clk / most
        whole = int(reached) - drawn
        if whole > 0:
            bar.append("█" * whole, CAUSES[StallCause(cause)].terminal)
            drawn += whole
    rest = int((reached - drawn) * 8)
    if rest or (stalls and not drawn):
        # The rest of the causes, or all of them in a bar that is too short for one.
        cause = [*stalls][-1 if drawn else 0]
        bar.append(_EIGHTHS[max(rest, 1)], CAUSES[StallCause(cause)].terminal)
        drawn += 1
    bar.append(" " * (width - drawn))
    return bar
