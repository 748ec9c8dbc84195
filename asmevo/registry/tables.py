"""What the command line prints for people: tables and the lineage tree."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

if TYPE_CHECKING:
    from asmevo.registry.records import (
        CandidateRecord,
        CaptureRecord,
        ObjectRecord,
        RecoveredRecord,
        ReplacementRecord,
        RunRecord,
    )

SHORT = 10
"""Hexadecimal digits shown of a hash."""

_NUMBERS = ("speedup", "median us", "samples", "bytes")
_FOLDED = ("kernel", "name", "device", "reason")
_STATUS_STYLES = {"committed": "bold green", "verified": "green", "error": "yellow"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # Rich would exit with status 1, which means that nothing was found.
        raise BrokenPipeError


def console() -> Console:
    """Standard output; without a terminal nothing is wrapped, cut or coloured."""
    if sys.stdout.isatty():
        return _Console(highlight=False)
    return _Console(highlight=False, width=10_000, color_system=None)


def printable(text: str) -> str:
    """``text`` with control characters escaped: names come from untrusted files."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def replacement_table(records: Sequence[ReplacementRecord], *, plain: bool) -> Table:
    """One line for each replacement."""
    table = _table("original", "kernel", "replacement", "speedup", "provenance", "device", "date",
                   "status", plain=plain)
    for r in records:
        table.add_row(
            r.original_sha256[:SHORT], Text(printable(r.kernel)), r.object_sha256[:SHORT],
            f"{r.speedup:.4f}x", Text(r.timing_source), Text(printable(r.device)),
            f"{r.created:%Y-%m-%d}",
            _status(r))
    return table


def _status(record: ReplacementRecord) -> str:
    status = ("withdrawn" if record.withdrawn else
              "confirmed" if record.speedup_again else "committed")
    return f"{status}, weaker gates" if record.weaknesses else status


def judgement_table(record: ReplacementRecord) -> Table:
    """By what a replacement was judged, one fact a line, and where that is less than usual."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts = {} if record.judgement is None else record.judgement.to_json()
    for name, value in facts.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        table.add_row(Text("judged by"), Text(f"{name} {printable(shown) or 'none'}"))
    for weakness in record.weaknesses:
        table.add_row(Text("weaker", "yellow"), Text(printable(weakness)))
    return table


def object_table(record: ObjectRecord, content: str,
                 recovered: Sequence[RecoveredRecord]) -> Table:
    """What is known of a code object, one fact a line."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in (
        ("object", record.sha256),
        ("content", content),
        ("isa", record.isa),
        ("size", f"{record.size} bytes"),
        ("kernels", ", ".join(record.kernels) or "none"),
        ("source", record.source),
        ("stored", f"{record.created:%Y-%m-%d %H:%M:%S} UTC"),
        *(("recovered", f"assembly {r.assembly_sha256}") for r in recovered),
    ):
        table.add_row(Text(name), Text(printable(value)))
    return table


def capture_table(records: Sequence[CaptureRecord], *, plain: bool) -> Table:
    """One line for each captured dispatch."""
    table = _table("capture", "original", "kernel", "name", "reason", "bytes", "date", plain=plain)
    for r in records:
        table.add_row(
            r.sha256[:SHORT], r.original_sha256[:SHORT], Text(printable(r.kernel)),
            Text(printable(r.name)), Text(r.reason.value), str(r.size), f"{r.created:%Y-%m-%d}")
    return table


def evidence_table(candidate: CandidateRecord, *, plain: bool) -> Table:
    """The verdicts on a candidate in the order they were given."""
    table = _table("gate", "outcome", "code", "reason", plain=plain)
    for verdict in candidate.verdicts:
        table.add_row(Text(printable(verdict.gate)), Text(printable(verdict.outcome)),
                      Text(printable(verdict.code)), Text(printable(verdict.reason)))
    return table


def timing_table(candidate: CandidateRecord, *, plain: bool) -> Table:
    """The timings of a candidate."""
    table = _table("dispatch", "median us", "samples", "provenance", "device", plain=plain)
    for timing in candidate.timings:
        table.add_row(timing.dispatch[:SHORT], f"{timing.median_us:.3f}",
                      str(len(timing.samples_us)), timing.source, Text(printable(timing.device)))
    return table


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
    return Text("  ".join(parts), style=_STATUS_STYLES.get(candidate.status.value, "dim"))


def _table(*columns: str, plain: bool) -> Table:
    table = Table(box=None if plain else box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column not in _FOLDED,
                         justify="right" if column in _NUMBERS else "left")
    return table
