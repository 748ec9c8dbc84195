"""The tables of a validation of the cycle model: for a terminal, for a file, and in the docs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from asmevo.report.marked import markdown_line

MARKER = "validate-timing"

# More rows than this of a group are in rows.jsonl only; the docs have the worst of them.
_SHOWN = 100
_SHOWN_WORST = 10
_NAMED = 4  # rows without an answer that are named

# Heading of a table, its columns (a column that ends in ">" is of numbers), its rows.
_Table = tuple[str, str, list[tuple[str, ...]]]


def tables(details: Mapping[str, Any], *, brief: bool = False) -> Iterator[_Table]:
    """What is demanded, the groups' statistics, and the rows of each group.

    ``brief`` leaves out what a terminal is too narrow for: why a row has no answer is in
    `unanswered`. Where two groups have a row of the same
    name, the later one's note has what the first says.
    """
    first: dict[str, Mapping[str, Any]] = {}
    for row in details["rows"]:
        first.setdefault(row["name"], row)
    if details["targets"]:
        yield ("Targets", "group,demand,found,verdict", [
            (t["group"], t["demand"], t["found"],
             {True: "met", False: "missed", None: "not judged"}[t["met"]])
            for t in details["targets"]])
    yield ("Groups", "group,answered>,median>,p90>,worst>,rank>,in kernels>,in shapes>" if brief
           else "group,rows>,answered>,median error>,p90>,worst>,"
           "rank>,rank within kernels>,rank within shapes>", [
               (g["group"], *((f"{g['answered']} of {g['rows']}",) if brief else
                              (str(g["rows"]), str(g["answered"]))),
                *(_percent(g[key]) for key in ("median", "p90", "worst")),
                "-" if g["overall"] is None else f"{g['overall']:.2f}",
                _rank(g["within_kernel"], g["kernels"]), _rank(g["within_shape"], g["shapes"]))
               for g in details["groups"]])
    for group in details["groups"]:
        rows = [row for row in details["rows"] if row["group"] == group["group"]]
        heading = f"{group['group']}: {len(rows)} rows"
        if len(rows) > _SHOWN:
            rows = sorted(rows, key=lambda row: abs(row["error"] or 0), reverse=True)[:_SHOWN_WORST]
            heading += f", the {_SHOWN_WORST} of the largest error"
        headings = "figure,expected>,modelled>,unit,error>,basis"
        yield (heading, headings if brief else f"{headings},source,note",
               [_cells(row, first[row["name"]], brief=brief) for row in rows])


def _cells(row: Mapping[str, Any], first: Mapping[str, Any], *, brief: bool) -> tuple[str, ...]:
    note = row["note"]
    if first["group"] != row["group"]:
        note = "; ".join(filter(None, (f"the model: {_number(first['modelled'])}", note)))
    cells = (row["name"], _number(row["expected"]), _number(row["modelled"]), row["unit"],
             _signed(row["error"]) + (" !" if row["within"] is False else ""), row["basis"])
    return cells if brief else (*cells, f"{row['source']} [{row['confidence']}]", note)


def unanswered(details: Mapping[str, Any]) -> Iterator[str]:
    """For each group and reason the rows that have no answer, in one sentence."""
    rows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in details["rows"]:
        if row["modelled"] is None:
            rows[row["group"], row["note"] or "no reason given"].append(row["name"])
    for (group, note), names in rows.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"{group}, no answer: {note}: {', '.join(names[:_NAMED])}{more}"


def markdown(details: Mapping[str, Any], device: str) -> str:
    """The tables as Markdown, and the device that they are of."""
    lines: list[str] = []
    for heading, headings, rows in tables(details):
        columns = headings.split(",")
        lines += [f"**{heading}**", "",
                  markdown_line([column.rstrip(">") for column in columns]),
                  markdown_line(["---:" if c.endswith(">") else "---" for c in columns]),
                  *(markdown_line(row) for row in rows), ""]
    return "\n".join([*lines, f"`!` misses its goal. Modelled by {device}.", ""])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1%}"


def _rank(value: float | None, count: int) -> str:
    return "-" if value is None else f"{value:.2f} ({count})"


