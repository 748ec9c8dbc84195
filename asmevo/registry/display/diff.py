"""What ``diff`` prints for people: a summary of each function, and its changed lines."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rich.table import Table
from rich.text import Text

from asmevo.registry.display.columns import Column, fitted
from asmevo.registry.names import printable
from asmevo.report.assembly_diff import Half, Kind, Row, parts

if TYPE_CHECKING:
    from asmevo.registry.browse.comparison import Change, Comparison, Side

Part: TypeAlias = Text | Table

_MOST_MNEMONICS = 8
_STYLES = {Kind.GONE: "red", Kind.NEW: "green", Kind.MOVED: "cyan", Kind.CHANGED: "",
           Kind.SAME: ""}
LEGEND = "- removed   + added   < moved away   > moved here   (numbers: instruction indices)"


def diff_shown(comparison: Comparison, width: int | None, *, context: int,
               summary: bool) -> Iterator[Part]:
    """All of it in order; ``context`` is how many unchanged lines stand around the others."""
    yield Text(f"--- {_told(comparison.old)}", "bold")
    yield Text(f"+++ {_told(comparison.new)}", "bold")
    if None not in comparison.sizes:
        old, new = comparison.sizes
        yield Text(f"{old:,} bytes" if old == new else f"{old:,} became {new:,} bytes")
    for names, what in ((comparison.gone, "only in the first"),
                        (comparison.added, "only in the second")):
        if names:
            yield Text(printable(f"{what}: {', '.join(names)}"))
    told = False
    for change in comparison.changes:
        yield Text()
        yield from _summary(change, width)
        if not summary and not change.same:
            yield Text("" if told else LEGEND, "dim")
            told = True
            yield from _changed(change, context)


def _told(side: Side) -> str:
    origin = "" if side.origin == "stored" else f" ({side.origin})"
    return printable(side.told) + origin


def _summary(change: Change, width: int | None) -> Iterator[Part]:
    counts = change.counts
    yield Text(printable(change.symbol), "bold")
    if change.same:
        yield Text(f"the same {len(change.new.lines):,} instructions")
    else:
        yield Text(
            f"{len(change.old.lines):,} instructions became {len(change.new.lines):,}: "
            f"{counts['moved']:,} moved, {counts['changed']:,} with other operands, "
            f"{counts['gone']:,} removed, {counts['new']:,} added, {counts['same']:,} unchanged")
    for kind, what in ((Kind.MOVED, "moved"), (Kind.GONE, "removed"), (Kind.NEW, "added")):
        if found := change.mnemonics(kind):
            yield Text(f"{what:<8}{_listed(found)}")
    for name, old, new in change.directives():
        yield Text(printable(f".amdhsa_{name} {old or 'absent'} -> {new or 'absent'}"))
    differing = [row for row in change.resources if row[1] != row[2]]
    if differing:
        yield fitted((Column("resource"), Column("before", right=True),
                      Column("after", right=True)), differing, width).table
    elif change.resources:
        yield Text("the same " + ", ".join(
            f"{value} {name}" for name, value, _ in change.resources[:4]) + " and occupancy")


def _listed(found: Counter[str]) -> str:
    told = [f"{name} {number}" for name, number in found.most_common(_MOST_MNEMONICS)]
    more = len(found) - len(told)
    return printable(", ".join(told)) + (f" and {more} more kinds" if more > 0 else "")


def _changed(change: Change, context: int) -> Iterator[Text]:
    starts = sorted(change.new.labels)
    for part in parts(change.rows, context):
        if not part.changed:
            continue
        yield _header(change, part.rows, starts)
        pending: list[Text] = []
        for row in part.rows:
            if row.same:
                yield from pending
                pending = []
            if row.new is not None and row.new.index in change.new.labels:
                label = Text(" " * 15 + printable(change.new.labels[row.new.index]) + ":", "dim")
                if pending:
                    pending.append(label)
                else:
                    yield label
            if row.old is not None and row.new is not None and row.same:
                yield Text(f"  {row.old.index:>6}{row.new.index:>6}  "
                           f"{printable(change.new.lines[row.new.index])}")
                continue
            if row.old is not None:
                yield _line("-<", row.old, change.old.lines, old=True)
            if row.new is not None:
                pending.append(_line("+>", row.new, change.new.lines, old=False))
        yield from pending


def _line(marks: str, half: Half, lines: Sequence[str], *, old: bool) -> Text:
    moved = half.kind is Kind.MOVED
    style = _STYLES[half.kind] or ("red" if old else "green")
    place = f"{half.index:>6}      " if old else f"{half.index:>12}"
    where = f"    ; {'to' if old else 'from'} {half.other}" if moved else ""
    return Text(f"{marks[moved]} {place}  {printable(lines[half.index])}{where}", style)


def _header(change: Change, rows: Sequence[Row], starts: Sequence[int]) -> Text:
    olds = [row.old.index for row in rows if row.old is not None]
    news = [row.new.index for row in rows if row.new is not None]
    first = news[0] if news else 0
    before = bisect_right(starts, first)
    label = f" after {change.new.labels[starts[before - 1]]}" if before else ""
    return Text(printable(
        f"@@ -{olds[0] if olds else 0},{len(olds)} +{first},{len(news)} @@ "
        f"{change.symbol}{label}"), "magenta")
