"""Several runs side by side, as the paper's tables have them.

`summarise` reads what runs left in their ``result.json``; the rest shows it: on a terminal, as
Markdown and as JSON. The speedup that counts is the one of the second timing, in a fresh process:
the best of many candidates looks better in the search that chose it than it is. A kernel without a
confirmed winner counts as 1, also when its run failed.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from asmevo.errors import AsmEvoError
from asmevo.failure import printable
from asmevo.report.acceptance import Acceptance, added_up, columns, lines
from asmevo.report.marked import markdown_line
from asmevo.report.result import SCHEMA, Status

SUMMARY_SCHEMA = "asmevo.comparison/1"
MARKER = "comparison"

_WIDE = 112          # columns from which the best case has room
_NARROW = 72         # columns below which latencies have none
_NAMED = 3           # devices that are named
_LARGEST = 64 << 20  # bytes of a result.json
_ENDED = frozenset({Status.COMMITTED.value, Status.NONE.value})
_CONFIRMED = frozenset({Status.COMMITTED.value, Status.INTERRUPTED.value})


class ComparisonError(AsmEvoError):
    """There is nothing to compare."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run. ``original_us`` and ``best_us`` are geometric means over the timed dispatches, as
    the speedup is; ``best_case`` names the dispatch that gained most and its speedup. ``again`` is
    the speedup in a fresh process, ``speedup`` the one in the search. ``acceptance`` is commits by
    attempts, and ``label`` tells runs of one kernel apart.
    """

    kernel: str
    status: str
    original_us: float | None = None
    best_us: float | None = None
    speedup: float | None = None
    again: float | None = None
    attempts: int = 0
    commits: int = 0
    acceptance: float | None = None
    best_case: str | None = None
    best_case_speedup: float | None = None
    source: str | None = None
    device: str | None = None
    seconds: float = 0.0
    stopped: str | None = None
    error: str | None = None
    folder: str | None = None
    label: str = ""

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.label}".strip()

    @property
    def improved(self) -> bool:
        """Whether a winner was confirmed by the second timing."""
        return self.status in _CONFIRMED and self.again is not None and self.again > 1.0

    @property
    def reported(self) -> float:
        """The speedup that counts."""
        return self.again if self.improved and self.again is not None else 1.0


@dataclass(frozen=True, slots=True)
class Totals:
    """Rows together. ``geometric_mean`` and ``largest`` are of the speedups that count,
    ``in_search`` is the geometric mean of those that the searches saw.
    """

    name: str
    kernels: int
    improved: int
    geometric_mean: float
    in_search: float
    largest: float
    best: str | None
    attempts: int
    commits: int
    seconds: float

    @property
    def acceptance(self) -> float | None:
        return self.commits / self.attempts if self.attempts else None


@dataclass(frozen=True, slots=True)
class Summary:
    """All rows, their totals, and those of each group; what proposers and rules came to."""

    rows: tuple[Row, ...]
    totals: Totals
    groups: tuple[Totals, ...] = ()
    proposers: tuple[Acceptance, ...] = ()
    rules: tuple[Acceptance, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the timings come from: measured, modelled, or both."""
        return tuple(sorted({row.source for row in self.rows if row.source}))

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(sorted({row.device for row in self.rows if row.device}))

    @property
    def unfinished(self) -> tuple[Row, ...]:
        """Rows of runs that failed or were interrupted."""
        return tuple(row for row in self.rows if row.status not in _ENDED)


def find_results(place: Path) -> tuple[Path, ...]:
    """``result.json`` files of a run folder, a multirun folder, or that file itself; in the order
    of their jobs."""
    if place.is_file():
        return (place,)
    if not place.is_dir():
        raise ComparisonError(f"there is no run folder '{place}'")
    found = sorted(place.rglob("result.json"), key=lambda path: [
        (not part.isdigit(), int(part) if part.isdigit() else 0, part)
        for part in path.relative_to(place).parts])
    if not found:
        raise ComparisonError(f"there is no result.json in '{place}'")
    return tuple(found)


def load_result(path: Path) -> dict[str, Any]:
    """A ``result.json``, or `ComparisonError` when it is none."""
    try:
        if path.stat().st_size > _LARGEST:
            raise ComparisonError(f"'{path}' is too large for a result.json")
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ComparisonError(f"'{path}' cannot be read: {error}") from error
    if not isinstance(loaded, dict) or loaded.get("schema") != SCHEMA:
        raise ComparisonError(f"'{path}' is not a result of this version ({SCHEMA})")
    # The folder may have been moved since it was written.
    return {**loaded, "folder": str(path.parent), "overrides": overrides(path.parent)}


def overrides(folder: Path) -> tuple[str, ...]:
    """What the command line of a run changed, as Hydra kept it."""
    file = folder / ".hydra" / "overrides.yaml"
    if not file.is_file():
        return ()
    text = file.read_text(encoding="utf-8", errors="replace")
    return tuple(line[2:].strip("'\"") for line in text.splitlines() if line.startswith("- "))


def load_results(places: Sequence[Path]) -> tuple[dict[str, Any], ...]:
    """The results of searches in some places; other tasks' are left out."""
    results = [load_result(path) for place in places for path in find_results(place)]
    searches = tuple(result for result in results if result.get("task") == "optimize")
    if not searches:
        raise ComparisonError("none of these runs is a search (task=optimize)")
    return searches


def summarise(
    results: Sequence[Mapping[str, Any]],
    groups: Mapping[str, str | Sequence[str]] | None = None,
) -> Summary:
    """``results`` are contents of ``result.json`` files, ``groups`` patterns of kernel names by
    the name of a group that gets totals of its own: ``{"Level 1": "kernelbench_l1_*"}``, or several
    for a group.
    """
    rows = tuple(_row(result, label)
                 for result, label in zip(results, _labels(results), strict=True))
    return Summary(rows, _totals("all", rows), tuple(
        _totals(name, members) for name, patterns in (groups or {}).items()
        if (members := [row for row in rows if _matches(row.kernel, patterns)])),
        added_up(results, "proposers"), added_up(results, "rules"))


def _matches(kernel: str, patterns: str | Sequence[str]) -> bool:
    return any(fnmatchcase(kernel, pattern)
               for pattern in ((patterns,) if isinstance(patterns, str) else patterns))


def _labels(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """For kernels that were searched several times what differs between these runs' overrides,
    or else the name of the folder."""
    kernels = Counter(result.get("kernel") for result in results)
    for result in results:
        kernel, given = result.get("kernel"), result.get("overrides") or ()
        if kernels[kernel] == 1:
            yield ""
            continue
        others = [set(other.get("overrides") or ()) for other in results
                  if other.get("kernel") == kernel]
        common = set.intersection(*others)
        own = " ".join(str(each) for each in given if each not in common)
        same = sum(other == set(given) for other in others) > 1
        folder = Path(str(result.get("folder") or "")).name
        yield f"{own} {folder}".strip() if same or not own else own


def _row(result: Mapping[str, Any], label: str) -> Row:
    timings = result.get("timings") or []
    original = _geometric_mean(t.get("original_us") for t in timings)
    best = _geometric_mean(_replacement_us(t) for t in timings)
    cases = [(s, str(t.get("dispatch"))) for t in timings if (s := _case_speedup(t)) is not None]
    gained, case = max(cases, default=(None, None))
    attempts, commits = int(result.get("attempts") or 0), int(result.get("commits") or 0)
    status = str(result.get("status"))
    return Row(
        kernel=str(result.get("kernel") or "?"), status=status,
        original_us=original, best_us=best,
        speedup=_number(result.get("speedup")), again=_number(result.get("speedup_again")),
        attempts=attempts, commits=commits, acceptance=commits / attempts if attempts else None,
        best_case=case, best_case_speedup=gained,
        source=result.get("timing_source"), device=result.get("device"),
        seconds=_number(result.get("wall_seconds")) or 0.0, stopped=result.get("stopped"),
        error=result.get("error"), folder=result.get("folder"), label=label,
    )


def _replacement_us(timing: Mapping[str, Any]) -> float | None:
    again = _number(timing.get("again_us"))
    return _number(timing.get("replacement_us")) if again is None else again


def _case_speedup(timing: Mapping[str, Any]) -> float | None:
    """Of the second timing, where there is one."""
    again = _number(timing.get("again_speedup"))
    return _number(timing.get("speedup")) if again is None else again


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _geometric_mean(values: Iterator[Any] | Sequence[Any]) -> float | None:
    numbers = [_number(value) for value in values]
    known = [n for n in numbers if n is not None and n > 0]
    if not known or len(known) != len(numbers):
        return None
    return math.exp(math.fsum(math.log(n) for n in known) / len(known))


def _totals(name: str, rows: Sequence[Row]) -> Totals:
    best = max(rows, key=lambda row: row.reported, default=None)
    return Totals(
        name=name, kernels=len(rows), improved=sum(row.improved for row in rows),
        geometric_mean=_geometric_mean([row.reported for row in rows]) or 1.0,
        in_search=_geometric_mean([max(row.speedup or 1.0, 1.0) for row in rows]) or 1.0,
        largest=best.reported if best is not None else 1.0,
        best=best.kernel if best is not None and best.improved else None,
        attempts=sum(row.attempts for row in rows), commits=sum(row.commits for row in rows),
        seconds=math.fsum(row.seconds for row in rows),
    )


# -- showing it --------------------------------------------------------------------------------

_COLUMNS = ("kernel", "original us>", "best us>", "speedup>", "again>", "attempts>", "commits>",
            "accepted>", "best case")


class ComparisonTable:
    """The table for a terminal, laid out for the width there is."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide, narrow = options.max_width >= _WIDE, options.max_width < _NARROW
        numbers = [number for number, _ in enumerate(_COLUMNS)
                   if (wide or number != 8) and not (narrow and number in (1, 2, 6))]
        table = Table(box=None, pad_edge=False, padding=(0, 2 if wide else 1, 0, 0))
        for number in numbers:
            name = _COLUMNS[number]
            table.add_column(name.rstrip(">"), justify="right" if name.endswith(">") else "left",
                             overflow="fold", ratio=None, min_width=4)
        for row in self._summary.rows:
            cells = _cells(row)
            style = "" if row.improved else "dim"
            table.add_row(*(Text(cells[number]) for number in numbers), style=style)
        yield table
        for text in sentences(self._summary):
            yield Text(printable(text))
        for title, found in _acceptance(self._summary):
            yield Text()
            shown = Table(box=None, pad_edge=False, padding=(0, 2 if wide else 1, 0, 0))
            for name in columns(title):
                shown.add_column(name.rstrip(">"), overflow="fold",
                                 justify="right" if name.endswith(">") else "left")
            for line in lines(found, len(self._summary.rows)):
                shown.add_row(*(Text(printable(cell)) for cell in line))
            yield shown


def markdown(summary: Summary) -> str:
    """The table and what it comes to, as Markdown."""
    heading = [name.rstrip(">") for name in _COLUMNS]
    heading[4] = "timed again"
    out = [
        markdown_line(heading),
        markdown_line(["---:" if name.endswith(">") else "---" for name in _COLUMNS]),
        *(markdown_line(_cells(row)) for row in summary.rows), "",
    ]
    # Not of the table's cells, but kernels' names may be anything here as well.
    out += [printable(text).replace("<", "&lt;") + "  " for text in sentences(summary)]
    for title, found in _acceptance(summary):
        names = columns(title)
        out += ["", markdown_line([name.rstrip(">") for name in names]),
                markdown_line(["---:" if name.endswith(">") else "---" for name in names]),
                *(markdown_line(line) for line in lines(found, len(summary.rows)))]
    return "\n".join(out) + "\n"


def _acceptance(summary: Summary) -> Iterator[tuple[str, Sequence[Acceptance]]]:
    """What there is to tell of proposers (where there are several) and of rules."""
    if len(summary.proposers) > 1:
        yield "proposer", summary.proposers
    if summary.rules:
        yield "rule", summary.rules


def to_dict(summary: Summary) -> dict[str, Any]:
    """For machines; ``rows`` in the order of the runs."""
    return {
        "schema": SUMMARY_SCHEMA,
        "rows": [{**asdict(row), "improved": row.improved, "reported": row.reported}
                 for row in summary.rows],
        "totals": _totals_dict(summary.totals),
        "groups": [_totals_dict(group) for group in summary.groups],
        "proposers": [asdict(each) for each in summary.proposers],
        "rules": [asdict(each) for each in summary.rules],
    }


def to_json(summary: Summary) -> str:
    """What `to_dict` gives, as text."""
    return json.dumps(to_dict(summary), indent=2, allow_nan=False) + "\n"


def from_dict(written: Mapping[str, Any]) -> Summary:
    """What `to_dict` was given."""
    def members(kind: type[Any], entry: Mapping[str, Any]) -> Any:
        return kind(**{field.name: entry[field.name] for field in fields(kind)})

    return Summary(tuple(members(Row, row) for row in written["rows"]),
                   members(Totals, written["totals"]),
                   tuple(members(Totals, group) for group in written["groups"]),
                   tuple(members(Acceptance, each) for each in written.get("proposers", ())),
                   tuple(members(Acceptance, each) for each in written.get("rules", ())))


def _totals_dict(totals: Totals) -> dict[str, Any]:
    return {**asdict(totals), "acceptance": totals.acceptance}


def sentences(summary: Summary) -> Iterator[str]:
    """What the table comes to."""
    for group in (*summary.groups, summary.totals):
        prefix = "" if group is summary.totals and not summary.groups else f"{group.name}: "
        best = "" if group.best is None else f", largest {group.largest:.3f}x ({group.best})"
        yield (f"{prefix}{group.improved} of {group.kernels} improved, geometric mean "
               f"{group.geometric_mean:.3f}x timed again ({group.in_search:.3f}x in the search)"
               f"{best}; {group.attempts:,} attempts, {group.commits:,} commits"
               + (f" ({100 * group.acceptance:.1f} %)" if group.acceptance is not None else ""))
    devices = summary.devices
    if devices:
        named = ", ".join(devices) if len(devices) <= _NAMED else f"{len(devices)} devices"
        yield f"Timings are {' and '.join(summary.sources)} on {named}."
    for row in summary.unfinished:
        yield f"{row.name}: {row.status}{f', {row.error}' if row.error else ''}"


def _cells(row: Row) -> tuple[str, ...]:
    case = "" if row.best_case is None else (
        f"{_ratio(row.best_case_speedup)} {printable(row.best_case)}")
    return (
        printable(row.name), _micro(row.original_us), _micro(row.best_us), _ratio(row.speedup),
        _ratio(row.again) if row.status in (*_CONFIRMED, Status.NONE.value) else row.status,
        f"{row.attempts:,}", f"{row.commits:,}",
        "-" if row.acceptance is None else f"{100 * row.acceptance:.1f} %", case,
    )


def _micro(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if value >= 100 else f"{value:.2f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}x"
