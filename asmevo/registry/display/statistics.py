"""What ``stats`` prints for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from asmevo.registry.display.columns import Column, fitted
from asmevo.registry.display.tables import SHORT
from asmevo.registry.records import ReplacementStatus

if TYPE_CHECKING:
    from asmevo.registry.catalog.statistics import Statistics

Part: TypeAlias = Table | Text

_MOST = 20
"""Lines of a table on a terminal; pipes and --json get all."""


def statistics_shown(found: Statistics, width: int | None) -> Iterator[Part]:
    """All tables that have a line, in order."""
    for number, (table, more) in enumerate(_tables(found, width)):
        if number:
            yield Text()
        yield table
        if more:
            yield Text(f"{more:,} more: --json has all", "dim")


def _tables(found: Statistics, width: int | None) -> Iterator[tuple[Table, int]]:
    yield _table([Column("stored"), Column("number", right=True)],
                 [(_words(name), f"{number:,}") for name, number in found.counts.items()], width)
    if found.storage:
        total = [("all", sum(s.blobs for s in found.storage),
                  sum(s.stored_bytes for s in found.storage), _sum(found))]
        rows = [(s.kind, s.blobs, s.stored_bytes, s.content_bytes) for s in found.storage]
        yield _table(
            [Column("blobs"), Column("number", right=True), Column("on disk", right=True),
             Column("content", right=True), Column("ratio", right=True, dropped=1)],
            [(_words(kind), f"{number:,}", decimal(size), "unknown" if content is None
              else decimal(content), "" if not (content and size) else f"{content / size:.1f}")
             for kind, number, size, content in (*rows, *total)], width)
    if found.gates:
        yield _table(
            [Column("gate"), Column("pass", right=True), Column("fail", right=True),
             Column("missing", right=True)],
            [(g.gate, f"{g.passed:,}", f"{g.failed:,}", f"{g.missing:,}") for g in found.gates],
            width)
    if found.rules:
        yield _table(
            [Column("rule", 20), Column("attempts", right=True), Column("committed", right=True),
             Column("share", right=True)],
            [(r.rule, f"{r.attempts:,}", f"{r.committed:,}",
              f"{100 * r.committed / r.attempts:.1f} %") for r in found.rules], width)
    yield _table(
        [Column("replacements"), *(Column(s.value, right=True) for s in ReplacementStatus)],
        [(source, *(f"{by[s]:,}" for s in ReplacementStatus))
         for source, by in found.replacements.items()], width)
    if found.speedups:
        yield _table(
            [Column("original"), Column("kernel", 16), Column("source"),
             Column("replacements", right=True), Column("least", right=True),
             Column("median", right=True), Column("best", right=True)],
            [(s.original_sha256[:SHORT], s.kernel, s.source, f"{s.replacements:,}",
              f"{s.least:.4f}x", f"{s.median:.4f}x", f"{s.best:.4f}x") for s in found.speedups],
            width)
    if found.growth:
        yield _table(
            [Column("new in"), Column("objects", right=True), Column("candidates", right=True),
             Column("replacements", right=True)],
            [(g.period, f"{g.objects:,}", f"{g.candidates:,}", f"{g.replacements:,}")
             for g in found.growth], width)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _sum(found: Statistics) -> int | None:
    sizes = [s.content_bytes for s in found.storage]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _table(columns: list[Column], rows: list[tuple[str, ...]],
           width: int | None) -> tuple[Table, int]:
    some = rows if width is None else rows[:_MOST]
    return fitted(columns, some, width).table, len(rows) - len(some)
