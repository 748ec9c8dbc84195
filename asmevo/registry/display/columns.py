"""A table that fits the terminal: columns become narrower, then the least telling are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from asmevo.registry.names import printable, shortened

GAP = 2
"""Blanks between two columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Its cells are cut in the middle down to ``least`` characters (None: never), or with ``folds``
    go on in the next line. Where it is still too wide the columns are ``dropped`` by that number,
    the highest first; one of 0 always stays.
    """

    name: str
    least: int | None = None
    right: bool = False
    folds: bool = False
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table, and the names of the columns that there was no room for."""

    table: Table
    left_out: tuple[str, ...]


def fitted(columns: Sequence[Column], rows: Sequence[Sequence[str | Text]],
           width: int | None) -> Fitted:
    """The table in at most ``width`` characters; None is as wide as it gets.

    Cells are names out of untrusted files: control characters are escaped, and nothing is markup.
    """
    cells = [[cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row]
             for row in rows]
    natural = [max([cell_len(column.name), *(row[n].cell_len for row in cells)])
               for n, column in enumerate(columns)]
    kept = list(range(len(columns)))
    widths = natural
    if width is not None:
        kept = _kept(columns, natural, width)
        widths = _widths(columns, natural, kept, width)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for n in kept:
        column = columns[n]
        table.add_column(column.name, width=widths[n], no_wrap=not column.folds,
                         overflow="fold" if column.folds else "ellipsis",
                         justify="right" if column.right else "left")
    for row in cells:
        table.add_row(*(row[n] if columns[n].folds else _cut(row[n], widths[n]) for n in kept))
    return Fitted(table, tuple(c.name for n, c in enumerate(columns) if n not in kept))


def _least(column: Column, natural: int) -> int:
    return natural if column.least is None else min(natural, max(column.least, len(column.name)))


def _kept(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[int]:
    kept = list(range(len(columns)))
    while kept:
        needed = sum(_least(columns[n], natural[n]) for n in kept) + GAP * (len(kept) - 1)
        droppable = [n for n in kept if columns[n].dropped]
        if needed <= width or not droppable:
            break
        kept.remove(max(droppable, key=lambda n: columns[n].dropped))
    return kept


def _widths(columns: Sequence[Column], natural: Sequence[int], kept: Sequence[int],
            width: int) -> list[int]:
    """All have their least; what is left goes evenly to those that want more."""
    widths = [_least(column, natural[n]) for n, column in enumerate(columns)]
    left = width - sum(widths[n] for n in kept) - GAP * (len(kept) - 1)
    while left > 0 and (narrow := [n for n in kept if widths[n] < natural[n]]):
        share = max(left // len(narrow), 1)
        for n in narrow:
            more = min(share, natural[n] - widths[n], left)
            widths[n] += more
            left -= more
    return widths


def _cut(cell: Text, width: int) -> Text:
    return cell if cell.cell_len <= width else Text(shortened(cell.plain, width), cell.style)
