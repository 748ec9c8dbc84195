"""What the command line prints for people: tables and the lineage tree."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleRenderable
from rich.text import Text
from rich.tree import Tree

from asmevo.registry.display.columns import Column, Fitted, fitted
from asmevo.registry.names import printable as printable

if TYPE_CHECKING:
    from asmevo.registry.records import (
        CandidateRecord,
        CaptureRecord,
        ReplacementRecord,
        RunRecord,
    )

SHORT = 10
"""Hexadecimal digits shown of a hash."""

_WIDEST = 10_000
STATUS_STYLES = {
    "committed": "bold green", "confirmed": "bold green", "verified": "green", "error": "yellow",
    "weaker": "yellow", "withdrawn": "red"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # Rich would exit with status 1, which means that nothing was found.
        raise BrokenPipeError


def console(*, wide: bool = False) -> Console:
    """Standard output; without a terminal, or ``wide``, nothing is wrapped or cut."""
    if sys.stdout.isatty():
        return _Console(highlight=False, markup=False, width=_WIDEST if wide else None)
    return _Console(highlight=False, markup=False, width=_WIDEST, color_system=None)


def show(out: Console, *parts: ConsoleRenderable | str) -> None:
    """Print tables and lines; what pads them to a rectangle is of no use in a file."""
    if out.is_terminal:
        out.print(*parts, sep="\n")
        return
    with out.capture() as capture:
        out.print(*parts, sep="\n")
    for line in capture.get().splitlines():
        out.file.write(f"{line.rstrip()}\n")


def width_of(out: Console) -> int | None:
    """How wide a table may be: None where nobody reads it on a terminal."""
    return out.width if out.is_terminal else None


def replacement_table(records: Sequence[ReplacementRecord], *, width: int | None,
                      wide: bool = False,
                      signers: Mapping[str, Sequence[str]] | None = None) -> Fitted:
    """One line for each replacement; ``signers`` are public keys by candidate.

    Hashes are cut to `SHORT` digits unless it is ``wide``.
    """
    signed = {} if signers is None else signers
    columns = [
        Column("original"), Column("kernel", 12), Column("replacement"),
        Column("speedup", right=True), Column("source"), Column("device", 12, dropped=3),
        Column("date", dropped=2), Column("status")]
    rows: list[list[str | Text]] = [[
        _hash(r.original_sha256, wide), r.kernel, _hash(r.object_sha256, wide),
        f"{r.speedup:.4f}x", r.timing_source, r.device, f"{r.created:%Y-%m-%d}",
        Text(r.status.value, STATUS_STYLES.get(r.status.value, ""))] for r in records]
    if any(signed.values()):
        columns.append(Column("signed by", dropped=1))
        for row, record in zip(rows, records, strict=True):
            row.append(" ".join(_hash(key, wide) for key in signed.get(record.candidate_id, ())))
    return fitted(columns, rows, None if wide else width)


def _hash(text: str, wide: bool) -> str:
    return text if wide else text[:SHORT]


def capture_table(records: Sequence[CaptureRecord], *, width: int | None) -> Fitted:
    """One line for each captured dispatch."""
    return fitted(
        (Column("capture"), Column("original", dropped=1), Column("kernel", 16),
         Column("name", 12), Column("reason"), Column("bytes", right=True),
         Column("date", dropped=2)),
        [(r.sha256[:SHORT], r.original_sha256[:SHORT], r.kernel, r.name, r.reason.value,
          f"{r.size:,}", f"{r.created:%Y-%m-%d}") for r in records], width)


def evidence_table(candidate: CandidateRecord, *, width: int | None) -> Fitted:
    """The verdicts on a candidate in the order they were given."""
    return fitted(
        (Column("gate"), Column("outcome"), Column("code", 12), Column("reason", 20, folds=True)),
        [(v.gate, v.outcome, v.code, v.reason) for v in candidate.verdicts], width)


def run_title(run: RunRecord) -> Text:
    """One line on a run."""
    return Text(f"run {printable(run.id)}: {printable(run.task)}, {run.status}, "
                f"{printable(run.device)} ({run.device_source})")


def lineage_tree(run: RunRecord, candidates: Sequence[CandidateRecord],
                 speedups: dict[str, float]) -> Tree:
    """The candidates of a run under the candidate that each was made from."""
    tree = Tree(run_title(run))
    children: dict[str | None, list[CandidateRecord]] = defaultdict(list)
    own = {c.id for c in candidates}
    for candidate in candidates:
        children[candidate.parent_id if candidate.parent_id in own else None].append(candidate)
    pending = [(tree, candidate) for candidate in reversed(children[None])]
    while pending:
        above, candidate = pending.pop()
        node = above.add(_label(candidate, speedups.get(candidate.id), own))
        pending.extend((node, child) for child in reversed(children[candidate.id]))
    return tree


def _label(candidate: CandidateRecord, speedup: float | None, own: set[str]) -> Text:
    parts = [printable(candidate.id), candidate.status.value]
    if speedup is not None:
        parts.append(f"{speedup:.4f}x")
    failed = next((v for v in candidate.verdicts if not v.passed), None)
    if failed is not None:
        parts.append(f"{failed.gate} {printable(failed.code)}")
    parts.append(printable(candidate.rule))
    if candidate.parent_id is not None and candidate.parent_id not in own:
        parts.append(f"from {printable(candidate.parent_id)} of an earlier run")
    return Text("  ".join(parts), style=STATUS_STYLES.get(candidate.status.value, "dim"))
