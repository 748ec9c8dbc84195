"""The assembly of two versions side by side, as the search page's template wants it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from asmevo.isa.program import Program
from asmevo.report.assembly_diff import Half, Kind, Row, comparable, compared, counts, labels, parts
from asmevo.report.marked_assembly import differing, marked
from asmevo.report.stall_bar import stall_bar
from asmevo.report.version_profile import VersionProfile

_MOST_ROWS = 12_000
_CONTEXT = 4


@dataclass(frozen=True, slots=True)
class _Side:
    program: Program
    texts: tuple[str, ...]
    labels: dict[int, str]
    profile: VersionProfile | None

    @classmethod
    def of(cls, program: Program, profile: VersionProfile | None) -> _Side:
        return cls(program, comparable(program), labels(program), profile)


class DiffView:
    """``parts`` for the template; ``shown`` says which lines (index and side) have an anchor."""

    def __init__(self, original: Program, winner: Program, old_profile: VersionProfile | None,
                 new_profile: VersionProfile | None) -> None:
        self._old = _Side.of(original, old_profile)
        self._new = _Side.of(winner, new_profile)
        self._most = max((sum(stalls.values()) for profile in (old_profile, new_profile)
                          if profile is not None for stalls in profile.stalls), default=0)
        self._rows = compared(self._old.texts, self._new.texts)
        self._parts = list(self._within_bounds())
        self.shown = {f"{side}{half.index}" for part in self._parts if isinstance(part, tuple)
                      for row in part[1] for side, half in (("o", row.old), ("n", row.new))
                      if half is not None}
        self.parts = [self._part(part) for part in self._parts]

    def sentence(self) -> str:
        """How much differs."""
        found = counts(self._rows)
        words = (f"{found[Kind.MOVED]:,} moved", f"{found[Kind.CHANGED]:,} with other operands",
                 f"{found[Kind.GONE]:,} removed", f"{found[Kind.NEW]:,} added",
                 f"{found[Kind.SAME]:,} unchanged")
        return (f"{len(self._old.program):,} instructions became {len(self._new.program):,}: "
                + ", ".join(words) + ".")

    def _within_bounds(self) -> Iterator[tuple[bool, tuple[Row, ...]] | int]:
        """Changed or not and its rows, or the number of rows left out. Changes go first."""
        runs = list(parts(self._rows, _CONTEXT))
        left = _MOST_ROWS - sum(len(run.rows) for run in runs if run.changed)
        budget = _MOST_ROWS
        for run in runs:
            if not run.changed:
                if len(run.rows) > left:
                    yield len(run.rows)
                    continue
                left -= len(run.rows)
            elif len(run.rows) > budget:
                yield (True, run.rows[:budget])
                yield len(run.rows) - budget
                budget = 0
                continue
            else:
                budget -= len(run.rows)
            yield (run.changed, run.rows)

    def _part(self, part: tuple[bool, tuple[Row, ...]] | int) -> dict[str, Any]:
        if isinstance(part, int):
            return {"left_out": f"{part:,} lines are not on this page", "changed": False}
        changed, rows = part
        return {"left_out": "", "changed": changed, "rows": [self._row(row) for row in rows],
                "told": f"{len(rows):,} unchanged lines"}

    def _row(self, row: Row) -> dict[str, Any]:
        changed: tuple[Sequence[bool], Sequence[bool]] = ((), ())
        if row.old is not None and row.new is not None and row.old.kind is Kind.CHANGED:
            changed = differing(self._old.texts[row.old.index], self._new.texts[row.new.index])
        label = next((side.labels[half.index] for side, half in (
            (self._new, row.new), (self._old, row.old))
            if half is not None and half.index in side.labels), None)
        return {"same": row.same, "label": label,
                "old": self._half(self._old, self._new, row.old, changed[0], "n"),
                "new": self._half(self._new, self._old, row.new, changed[1], "o")}

    def _half(self, side: _Side, other: _Side, half: Half | None, changed: Sequence[bool],
              anchor: str) -> dict[str, Any] | None:
        if half is None:
            return None
        stalls = {} if side.profile is None else side.profile.stalls[half.index]
        total = sum(stalls.values())
        place = half.other
        if place is not None and f"{anchor}{place}" not in self.shown:
            place = None
        where = "" if place is None else _offset(other.program.offsets[place])
        return {
            "index": half.index, "offset": _offset(side.program.offsets[half.index]),
            "kind": half.kind.value, "stalled": f"{total:,}" if total else "",
            "bar": stall_bar(stalls, self._most) if total else Markup(),
            "text": marked(side.texts[half.index], changed), "other": place, "where": where,
            "told": f"at {where} in the {'winner' if anchor == 'n' else 'original'}",
        }


def _offset(offset: int) -> str:
    return f"{offset:#06x}"
