"""The table of a trial of the threat model: for a terminal, for a file, and in the docs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from asmevo.report.marked import markdown_line
from asmevo.threats.corpus import ROWS

MARKER = "threats"

HEADINGS = "row,threat,kernel,verdict,gate,reason,without the check"


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
    """A line for each threat, ``only`` those of some verdicts."""
    for entry in details["threats"]:
        if only is None or entry["judgement"] in only:
            told = "" if entry["as_told"] else " (another than named)"
            yield (entry["row"], entry["title"], entry["kernel"], entry["judgement"],
                   entry["gate"], f"{entry['code']}{told}", _without(entry))


def _without(entry: Mapping[str, Any]) -> str:
    if entry["without"] is None or entry["believed"] is None:
        return ""
    if not entry["believed"]:
        return f"{entry['without']}: rejected"
    return f"{entry['without']}: believed, {entry['speedup']:.3f}x"


def verdict(details: Mapping[str, Any]) -> str:
    """All verdicts with their numbers, in one phrase."""
    return ", ".join(f"{count} {name}" for name, count in details["counts"].items())


def markdown(details: Mapping[str, Any], device: str) -> str:
    """Both tables as Markdown, and the device that they are of."""
    out = [markdown_line(["row", "cheat", "tried", "verdicts", "caught by"]),
           markdown_line(["---", "---", "---:", "---", "---"]),
           *(markdown_line([str(cell) for cell in line]) for line in summary(details)), "",
           markdown_line(HEADINGS.split(",")), markdown_line(["---"] * 7),
           *(markdown_line([str(cell) for cell in line]) for line in lines(details)), "",
           f"{verdict(details)}. Speedups are modelled by {device}.", ""]
    return "\n".join(out)
