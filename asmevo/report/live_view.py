"""What a terminal shows of a running search, laid out for the size there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from asmevo.failure import printable
from asmevo.gates.verdict import Gate, Outcome
from asmevo.report.lineage_lines import lineage_text
from asmevo.report.search_state import Moment, SearchState, WorkerState, counted

_WIDE = 110         # columns from which tree and events stand side by side
_MOST_TREE = 16
_STYLES = {"committed": "green", "fault": "red", "redirected": "yellow", "escalated": "yellow",
           "composed": "cyan"}


@dataclass(frozen=True)
class SearchView:
    """Draws ``state`` each time it is rendered. ``seconds`` gives those that are used up now."""

    state: SearchState
    title: str
    source: str
    seconds: Callable[[], float]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        # The last line of the screen stays free, or the terminal would scroll.
        left = max(console.size.height - 1, 1)
        parts: list[RenderableType] = []
        for height, part in self._fixed(width, left):
            if height > left:
                break
            parts.append(part)
            left -= height
        parts += self._rest(width, left)
        yield from parts

    def _fixed(self, width: int, height: int) -> Iterator[tuple[int, RenderableType]]:
        yield 1, self._head()
        bars = list(self._bars())
        per_line = 2 if width >= 72 else 1
        for first in range(0, len(bars), per_line):
            yield 1, _bar_line(bars[first:first + per_line], width, per_line)
        yield 1, self._gates()
        workers = sorted(self.state.workers.values(), key=lambda w: w.number)
        if workers:
            shown = workers[:max(min(len(workers), height - 14), 1)]
            hidden = len(workers) - len(shown)
            yield len(shown) + 2 + bool(hidden), _worker_table(shown, hidden, width)

    def _head(self) -> Text:
        best = self.state.best
        speedup = 1.0 if best is None else best.speedup
        at = "" if best is None or not best.number else f", node {best.number}"
        return _line(Text.assemble(
            ("best ", ""), (f"{speedup:.4f}x", "bold green" if speedup > 1 else "bold"),
            f" {self.source}{at}  ", (printable(self.title), "bold"),
            f"  {counted(self.state.commits, 'commit')}"
            + (f", {counted(self.state.faults, 'fault')}" if self.state.faults else "")
            + (f", exploration {self.state.level}" if self.state.level else "")))

    def _bars(self) -> Iterator[tuple[str, float, float, str]]:
        """Name, spent, bound (0: none) and both in words."""
        state, bounds = self.state, self.state.bounds
        most = bounds.attempts
        yield "attempts", state.used, most, _of(f"{state.used:,}", f"{most:,}" if most else "")
        seconds, limit = self.seconds(), bounds.seconds
        yield "time", seconds, limit, _of(clock(seconds), clock(limit) if limit else "")
        tokens, cost = bounds.tokens, bounds.cost
        if tokens is not None or state.tokens:
            yield ("tokens", state.tokens, tokens or 0,
                   _of(_short(state.tokens), _short(tokens) if tokens else ""))
        if cost is not None or state.cost:
            yield ("cost", state.cost, cost or 0.0,
                   _of(f"${state.cost:,.2f}", f"${cost:,.2f}" if cost else ""))

    def _gates(self) -> Text:
        line = Text.assemble(("passed  ", "dim"))
        for gate in Gate:
            counts = self.state.verdicts[gate.value]
            passed, reached = counts[Outcome.PASS], counts.total()
            line.append(f"{gate.value} ", "bold")
            line.append(f"{passed:,}/{reached:,}  ", "" if reached else "dim")
        skipped = self.state.duplicates + self.state.not_proposed
        if skipped:
            line.append(counted(skipped, "repeat"), "dim")
        return _line(line)

    def _rest(self, width: int, height: int) -> Iterator[RenderableType]:
        """Tree and events in the lines that are left, each below a heading."""
        state = self.state
        if height < 4 or not state.nodes:
            return
        events = state.moments
        if width >= _WIDE:
            grid = Table.grid(padding=(0, 2), expand=True)
            grid.add_column(ratio=1)
            grid.add_column(ratio=1)
            room = min(height - 2, _MOST_TREE)
            grid.add_row(_block("lineage", lineage_text(state.nodes, room)),
                         _block("events", _moments(events, room)))
            yield Text()
            yield grid
            return
        for_events = min(len(events), max((height - 4) // 2, 1)) if events and height >= 7 else 0
        for_tree = min(height - 2 - (for_events + 2 if for_events else 0), _MOST_TREE)
        yield Text()
        yield _block("lineage", lineage_text(state.nodes, for_tree))
        if for_events:
            yield Text()
            yield _block("events", _moments(events, for_events))


def _line(text: Text) -> Text:
    """One line, whatever the width."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _block(heading: str, body: Text) -> Table:
    grid = Table.grid(expand=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_row(Text(heading, "dim"))
    grid.add_row(body)
    return grid


def _bar_line(bars: list[tuple[str, float, float, str]], width: int, per_line: int) -> Table:
    grid = Table.grid(padding=(0, 1))
    each = width // per_line
    for _ in bars:
        grid.add_column(width=8, no_wrap=True)
        grid.add_column(width=max(each - 29, 4))
        grid.add_column(width=17, no_wrap=True, overflow="ellipsis")
    cells: list[RenderableType] = []
    for name, spent, bound, words in bars:
        cells += [Text(name, "dim"),
                  ProgressBar(total=bound, completed=min(spent, bound), complete_style="cyan",
                              finished_style="yellow") if bound else Text("no limit", "dim"),
                  Text(words)]
    grid.add_row(*cells)
    return grid


def _worker_table(workers: list[WorkerState], hidden: int, width: int) -> Table:
    """One line for each worker; the gates' columns count the candidates that each stopped."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("\nw", no_wrap=True)
    table.add_column("\ndirection", no_wrap=True, overflow="ellipsis",
                     width=17 if width >= 80 else max(width // 6, 5))
    table.add_column("\nbase", no_wrap=True, justify="right")
    table.add_column("\ntried", no_wrap=True, justify="right")
    gates = [gate.value for gate in Gate] if width >= 76 else []
    for gate in gates:
        table.add_column(f"\n-{gate}", no_wrap=True, justify="right")
    table.add_column("\nok", no_wrap=True, justify="right")
    table.add_column("\nbest", no_wrap=True, justify="right", min_width=7)
    table.add_column("\nlast rule", no_wrap=True, overflow="ellipsis", ratio=1)
    for worker in workers:
        table.add_row(
            str(worker.number), _task(worker), str(worker.base), str(worker.attempts),
            *(Text(str(worker.rejected[gate]), "" if worker.rejected[gate] else "dim")
              for gate in gates),
            Text(str(worker.commits), "green" if worker.commits else "dim"),
            "-" if worker.best is None else f"{worker.best:.4f}", _doing(worker, width),
            style="" if worker.working else "dim")
    if hidden:
        table.add_row("", f"… {hidden} more")
    return table


def _task(worker: WorkerState) -> Text:
    if worker.parts:
        return Text(f"composing {worker.parts}")
    return Text(printable(", ".join(worker.directions)) or "all directions")


def _doing(worker: WorkerState, width: int) -> Text:
    text = Text(printable(worker.rule))
    if worker.windows and width >= _WIDE:
        start, stop = worker.windows[0][0], worker.windows[-1][1]
        text.append(f"  [{start}:{stop}]", "dim")
    return text


def _moments(moments: list[Moment], room: int) -> Text:
    shown = moments[-room:] if room > 0 else []
    return Text("\n", no_wrap=True, overflow="ellipsis").join(
        Text.assemble((f"{clock(moment.seconds):>7} ", "dim"),
                      (printable(moment.text), _STYLES.get(moment.kind, "")))
        for moment in shown)


def clock(seconds: float) -> str:
    """``1:02:03``, ``2:03``."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def _of(spent: str, bound: str) -> str:
    return f"{spent} of {bound}" if bound else spent


def _short(count: int) -> str:
    for factor, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= 10 * factor or count == factor:
            return f"{count / factor:.3g}{unit}"
    return f"{count:,}"
