"""The table of a trial of the threat model: for a terminal, for a file, and in the docs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from asmevo.report.marked import markdown_line
from asmevo.threats.corpus import ROWS

MARKER = "threats"

HEADINGS = "row,threat,kernel,verdict,gate,reason,without G1,without the check"


def summary(details: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    """A line for each row that was tried: what it is, how many were tried, what became of them."""
    for row in ROWS:
        tried = [e for e in details["threats"] if e["row"] == row.name]
        if not tried:
            continue
        verdicts = sorted({e["judgement"] for e in tried})
        yield (row.name, row.cheat, str(len(tried)), ", ".join(
            f"{sum(1 for e in tried if e['judgement'] == v)} {v}" for v in verdicts),
            ", ".join(sorted({f"{e['gate']} {e['code']}" for e in tried if e["code"] != "ok"
                              and e["kind"] != "equivalent"})))


def lines(details: Mapping[str, Any], *, only: frozenset[str] | None = None) -> Iterator[
        tuple[object, ...]]:
    """A line for each threat, ``only`` those of some verdicts: kernels on which the same became of
    it share one.
    """
    alike: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for entry in details["threats"]:
        if only is None or entry["judgement"] in only:
            told = "" if entry["as_told"] else " (another than named)"
            head = (entry["row"], entry["title"])
            tail = (entry["judgement"], entry["gate"], f"{entry['code']}{told}", _depth(entry))
            alike.setdefault((*head, *tail), []).append(entry)
    for (row, title, *became), entries in alike.items():
        yield (row, title, ", ".join(e["kernel"] for e in entries), *became, _without(entries))


def _depth(entry: Mapping[str, Any]) -> str:
    """What becomes of a cheat that G1 stopped, but that another gate is there for."""
    deeper = entry["depth"]
    if deeper is None or entry["gate"] != "G1":
        return ""
    return f"{deeper['judgement']} {deeper['gate']} {deeper['code']}"


def _without(entries: Sequence[Mapping[str, Any]]) -> str:
    asked = [e for e in entries if e["without"] is not None and e["believed"] is not None]
    if not asked:
        return ""
    if not all(e["believed"] for e in asked):
        return f"{asked[0]['without']}: rejected"
    speedups = sorted(f"{e['speedup']:.3f}x" for e in asked)
    span = speedups[0] if speedups[0] == speedups[-1] else f"{speedups[0]} to {speedups[-1]}"
    return f"{asked[0]['without']}: believed, {span}"


def verdict(details: Mapping[str, Any]) -> str:
    """All verdicts with their numbers, in one phrase."""
    counts = ", ".join(f"{count} {name}" for name, count in details["counts"].items())
    deep = sum(1 for e in details["threats"] if e["depth"] is not None)
    return f"{counts}; with G1 left out {details['shallow']} of {deep} cheats succeed"


def markdown(details: Mapping[str, Any], device: str) -> str:
    """Both tables as Markdown, and the device that they are of."""
    out = [markdown_line(["row", "cheat", "tried", "verdicts", "caught by"]),
           markdown_line(["---", "---", "---:", "---", "---"]),
           *(markdown_line([str(cell) for cell in line]) for line in summary(details)), "",
           markdown_line(HEADINGS.split(",")), markdown_line(["---"] * 8),
           *(markdown_line([str(cell) for cell in line]) for line in lines(details)), "",
           f"{verdict(details)}. Speedups are modelled by {device}.", ""]
    return "\n".join(out)
