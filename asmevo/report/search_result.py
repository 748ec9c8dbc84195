"""What a terminal shows of a search that has ended, above the facts of its result."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from asmevo.failure import printable
from asmevo.gates.verdict import Gate, Outcome
from asmevo.report.acceptance import several_as_one
from asmevo.report.lineage_lines import lineage_text
from asmevo.report.result import Result
from asmevo.report.search_state import NodeState
from asmevo.search.events import ParentFact

GATES: Mapping[Gate, str] = {
    Gate.G0: "assembles", Gate.G1: "static", Gate.G2: "equal, three times", Gate.G3: "timed",
    Gate.G4: "better by more than noise",
}
_MOST_NODES = 30
_MOST_RULES = 12
_MOST_DISPATCHES = 12


def search_shown(result: Result) -> Iterator[RenderableType]:
    """Lineage, verdicts, proposals, timings: what there is of each."""
    nodes = read_lineage(Path(result.folder)) if result.folder else ()
    if len(nodes) > 1:
        yield lineage_text(nodes, _MOST_NODES)
    if result.verdicts:
        yield verdict_table(result.verdicts)
    if len(result.proposers) > 1:
        yield _records("proposer", result.proposers)
    if result.rules:
        yield _records("rule", several_as_one(result.rules))
    if result.replacement_sha256 and result.timings:
        yield _timings(result.timings)


def verdict_table(verdicts: Mapping[str, Mapping[str, int]]) -> Table:
    """Candidates by gate and outcome."""
    table = _table("gate", *(f"{outcome.value}>" for outcome in Outcome))
    for gate in Gate:
        counts = verdicts.get(gate.value, {})
        table.add_row(f"{gate.value}  {GATES[gate]}",
                      *(str(counts.get(o.value, 0)) for o in Outcome))
    return table


def _records(title: str, records: Mapping[str, Mapping[str, float]]) -> Table:
    table = _table(title, "proposed>", "passed>", "committed>", "accepted>", "gain>")
    ranked = sorted(records.items(), key=lambda item: (
        -item[1].get("gain", 0.0), -item[1].get("proposed", 0), item[0]))
    for name, record in ranked[:_MOST_RULES]:
        proposed, accepted = record.get("proposed", 0), record.get("accepted", 0)
        gain = record.get("gain", 0.0)
        table.add_row(
            Text(printable(name)), f"{proposed:,}", f"{record.get('passed', 0):,}",
            f"{accepted:,}", f"{100 * accepted / proposed:.1f} %" if proposed else "-",
            f"+{100 * math.expm1(gain):.2f} %" if gain > 0 else "",
            style="" if accepted else "dim")
    if len(ranked) > _MOST_RULES:
        table.add_row(Text(f"{len(ranked) - _MOST_RULES} more in report.html", "dim"))
    return table


def _timings(timings: list[dict[str, Any]]) -> Table:
    table = _table("dispatch", "original us>", "winner us>", "speedup>", "again>")
    for entry in timings[:_MOST_DISPATCHES]:
        table.add_row(
            Text(printable(str(entry["dispatch"]))), _number(entry["original_us"], ".3f"),
            _number(entry["replacement_us"], ".3f"), _number(entry["speedup"], ".4f", "x"),
            _number(entry["again_speedup"], ".4f", "x"))
    if len(timings) > _MOST_DISPATCHES:
        table.add_row(Text(f"{len(timings) - _MOST_DISPATCHES} more in report.html", "dim"))
    return table


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:,{form}}{unit}"


def _table(*columns: str) -> Table:
    """A column that ends in ``>`` is of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name.rstrip(">"), justify="right" if name.endswith(">") else "left",
                         overflow="fold")
    return table


def read_lineage(folder: Path) -> tuple[NodeState, ...]:
    """The nodes of ``lineage.json``; none where it is missing or is no lineage."""
    try:
        entries = json.loads((folder / "lineage.json").read_text(encoding="utf-8"))
        nodes = tuple(_node(entry) for entry in entries)
    except (OSError, ValueError, TypeError, KeyError):
        return ()
    sound = all(node.number == number and (node.parent is None) is (number == 0)
                and (node.parent is None or 0 <= node.parent < number)
                for number, node in enumerate(nodes))
    return nodes if sound else ()


def _node(entry: Mapping[str, Any]) -> NodeState:
    return NodeState(
        int(entry["number"]), None if entry["parent"] is None else int(entry["parent"]),
        float(entry["speedup"]), str(entry["sha256"]), rule=str(entry["rule"]),
        proposer=str(entry.get("proposer", "")), direction=str(entry["direction"] or ""),
        rationale=str(entry["rationale"]), candidate=str(entry.get("candidate", "")),
        parents=tuple(ParentFact(str(p["candidate"]), float(p["speedup"]), p.get("node"),
                                 str(p.get("rule", "")))
                      for p in entry.get("parents", ())))
