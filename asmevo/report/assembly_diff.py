"""Two versions of a kernel side by side: what stayed, changed, moved, came and went."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from asmevo.isa.program import Program

# Lines of a gap without common unique lines, old times new, up to which it is compared in full.
_MOST_COMPARED = 1_000_000
_LEAST_FOLDED = 6


class Kind(StrEnum):
    """What became of a line."""

    SAME = "same"
    CHANGED = "changed"  # other operands, beside each other
    MOVED = "moved"      # the same line elsewhere
    GONE = "gone"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Half:
    """One side of a row: line ``index`` of that version; ``other`` is its place in the other one,
    for a line that moved."""

    index: int
    kind: Kind
    other: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Lines that stand beside each other; one of both may be missing."""

    old: Half | None
    new: Half | None

    @property
    def same(self) -> bool:
        return self.old is not None and self.old.kind is Kind.SAME


@dataclass(frozen=True, slots=True)
class Part:
    """Rows in a run: ``changed`` with some context around, or all the same."""

    changed: bool
    rows: tuple[Row, ...]


def comparable(program: Program) -> tuple[str, ...]:
    """A program's lines with branch targets by number of label, in address order: an instruction
    that is inserted before a branch does not change it."""
    targets = sorted({target for target in program.targets if target is not None})
    names = {target: f"L{number}" for number, target in enumerate(targets)}
    return tuple(
        instruction.text if target is None else f"{instruction.text.split()[0]} {names[target]}"
        for instruction, target in zip(program.instructions, program.targets, strict=True))


def labels(program: Program) -> dict[int, str]:
    """The label in front of an instruction, as `comparable` names it."""
    targets = sorted({target for target in program.targets if target is not None})
    return {target: f"L{number}" for number, target in enumerate(targets)}


def compared(old: Sequence[str], new: Sequence[str]) -> tuple[Row, ...]:
    """All lines of both versions, in order."""
    pairs = _matches(old, new)
    moved_old, moved_new = _moved(old, new, pairs)
    rows: list[Row] = []
    before = (0, 0)
    for at in (*pairs, (len(old), len(new))):
        rows += _gap(old, new, range(before[0], at[0]), range(before[1], at[1]), moved_old,
                     moved_new)
        if at[0] < len(old):
            rows.append(Row(Half(at[0], Kind.SAME), Half(at[1], Kind.SAME)))
        before = (at[0] + 1, at[1] + 1)
    return tuple(rows)


def parts(rows: Sequence[Row], context: int = 4) -> Iterator[Part]:
    """The rows in runs; unchanged ones that are nearer than ``context`` go with the changed."""
    near = [False] * len(rows)
    for number, row in enumerate(rows):
        if not row.same:
            first = max(number - context, 0)
            near[first:number + context + 1] = [True] * len(near[first:number + context + 1])
    _fill(near)
    start = 0
    for number in range(1, len(rows) + 1):
        if number == len(rows) or near[number] != near[start]:
            yield Part(near[start], tuple(rows[start:number]))
            start = number


def _fill(near: list[bool]) -> None:
    """Set runs that are too short to be worth folding."""
    start = 0
    for number in range(1, len(near) + 1):
        if number == len(near) or near[number] != near[start]:
            if not near[start] and number - start < _LEAST_FOLDED and True in near:
                near[start:number] = [True] * (number - start)
            start = number


def counts(rows: Sequence[Row]) -> Counter[Kind]:
    """Lines by what became of them; a changed or moved one counts once."""
    found: Counter[Kind] = Counter()
    for row in rows:
        if row.old is not None:
            found[row.old.kind] += 1
        if row.new is not None and row.new.kind is Kind.NEW:
            found[Kind.NEW] += 1
    return found


def _matches(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal lines, ascending in both."""
    found: list[tuple[int, int]] = []
    pending = [(0, len(old), 0, len(new))]
    while pending:
        a, b, c, d = pending.pop()
        while a < b and c < d and old[a] == new[c]:
            found.append((a, c))
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
            found.append((b, d))
        if a == b or c == d:
            continue
        anchors = _anchors(old, new, (a, b, c, d))
        if not anchors:
            if (b - a) * (d - c) <= _MOST_COMPARED:
                matcher = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False)
                found += [(a + m.a + k, c + m.b + k) for m in matcher.get_matching_blocks()
                          for k in range(m.size)]
            continue
        for i, j in (*anchors, (b, d)):
            pending.append((a, i, c, j))
            a, c = i + 1, j + 1
        found += anchors
    return sorted(found)


def _anchors(old: Sequence[str], new: Sequence[str],
             ranges: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    """Lines that are there once on each side, as many as keep their order (patience diff)."""
    a, b, c, d = ranges
    once = {line for line, count in Counter(old[a:b]).items() if count == 1}
    once &= {line for line, count in Counter(new[c:d]).items() if count == 1}
    at_new = {new[j]: j for j in range(c, d) if new[j] in once}
    pairs = [(i, at_new[old[i]]) for i in range(a, b) if old[i] in once]
    # The longest ascending subsequence of the new side's places.
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        place = bisect_left(tops, j)
        before.append(ends[place - 1] if place else -1)
        if place == len(tops):
            tops.append(j)
            ends.append(number)
        else:
            tops[place], ends[place] = j, number
    chain: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _moved(old: Sequence[str], new: Sequence[str],
           pairs: Sequence[tuple[int, int]]) -> tuple[dict[int, int], dict[int, int]]:
    """Where lines without a partner turn up on the other side: the first to the first."""
    kept_old, kept_new = {i for i, _ in pairs}, {j for _, j in pairs}
    places: defaultdict[str, deque[int]] = defaultdict(deque)
    for j, line in enumerate(new):
        if j not in kept_new:
            places[line].append(j)
    moved: dict[int, int] = {}
    for i, line in enumerate(old):
        if i not in kept_old and places[line]:
            moved[i] = places[line].popleft()
    return moved, {j: i for i, j in moved.items()}


def _gap(old: Sequence[str], new: Sequence[str], olds: range, news: range,
         moved_old: dict[int, int], moved_new: dict[int, int]) -> Iterator[Row]:
    """Rows between two pairs of equal lines."""
    pairs = _similar(old, new, [i for i in olds if i not in moved_old],
                     [j for j in news if j not in moved_new])
    i, j = olds.start, news.start
    for at in (*pairs, (olds.stop, news.stop)):
        left = [Half(n, Kind.MOVED, moved_old[n]) if n in moved_old else Half(n, Kind.GONE)
                for n in range(i, at[0])]
        right = [Half(n, Kind.MOVED, moved_new[n]) if n in moved_new else Half(n, Kind.NEW)
                 for n in range(j, at[1])]
        for number in range(max(len(left), len(right))):
            yield Row(left[number] if number < len(left) else None,
                      right[number] if number < len(right) else None)
        if at[0] < olds.stop:
            yield Row(Half(at[0], Kind.CHANGED), Half(at[1], Kind.CHANGED))
        i, j = at[0] + 1, at[1] + 1


def _similar(old: Sequence[str], new: Sequence[str], olds: Sequence[int],
             news: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of lines with the same mnemonic, ascending in both."""
    if not olds or not news or len(olds) * len(news) > _MOST_COMPARED:
        return []
    matcher = SequenceMatcher(None, [_mnemonic(old[i]) for i in olds],
                              [_mnemonic(new[j]) for j in news], autojunk=False)
    return [(olds[m.a + k], news[m.b + k]) for m in matcher.get_matching_blocks()
            for k in range(m.size)]


def _mnemonic(line: str) -> str:
    word = line.split(maxsplit=1)[0] if line else ""
    return re.sub(r"_e(32|64)$", "", word)
