"""Which instructions of an original a candidate has kept, and what is between them instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction
from asmevo.isa.program import Program
from asmevo.isa.recent import Recent

# How far two programs are looked ahead for where they go on alike.
_MOST_CHANGED = 64
_JUMPS = ("s_branch", "s_cbranch")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Instructions ``first`` up to but not including ``last`` of an original that others have
    taken the place of, ``start`` up to ``stop`` of the candidate; either may be none."""

    first: int
    last: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class KeptCode:
    """The original's instruction of each of a candidate's that is kept, and the changed stretches
    of each of the candidate's blocks."""

    origin: dict[int, int]
    stretches: dict[int, tuple[Stretch, ...]]

    @staticmethod
    def of(original: Program, before: Cfg, candidate: Program, after: Cfg) -> KeptCode | None:
        """``None`` unless both have the same blocks, which are left by the same jumps."""
        if not _same_edges(before, after):
            return None
        old, new = _keys(original), _keys(candidate)
        origin: dict[int, int] = {}
        stretches = {}
        for number, (here, there) in enumerate(zip(after.blocks, before.blocks, strict=True)):
            ends = original.instructions[there.end - 1], candidate.instructions[here.end - 1]
            if old[there.end - 1] != new[here.end - 1] and any(
                    i.is_branch or i.ends_program for i in ends):
                return None
            changed = []
            first, start = there.start, here.start
            for last, stop, count in _alike(old, new, there.start, there.end, here.start, here.end):
                if last > first or stop > start:
                    changed.append(Stretch(first, last, start, stop))
                origin.update(zip(range(stop, stop + count), range(last, last + count),
                                  strict=True))
                first, start = last + count, stop + count
            if changed:
                stretches[number] = tuple(changed)
        return KeptCode(origin, stretches)


def _same_edges(before: Cfg, after: Cfg) -> bool:
    return (len(before.blocks) == len(after.blocks) and before.order == after.order
            and before.functions == after.functions
            and not before.unknown and not after.unknown
            and all(a.successors == b.successors and a.predecessors == b.predecessors
                    and a.resumes == b.resumes
                    for a, b in zip(before.blocks, after.blocks, strict=True)))


@lru_cache(maxsize=1 << 16)
def _named(text: str, op: str, encoding: str) -> str:
    """An instruction's text without what makes no difference to the values: how wide it is."""
    return f"{op} {text.partition(' ')[2]}" if encoding in ("e32", "e64") else text


_recent: Recent[list[str]] = Recent(4)


def _keys(program: Program) -> list[str]:
    return _recent.get(lambda: [_key(i) for i in program.instructions], program)


def _key(i: Instruction) -> str:
    # Where a jump leads to is in the graph; its distance changes with the code between.
    return i.op if i.op.startswith(_JUMPS) else _named(i.text, i.op, i.encoding)


def _alike(old: Sequence[str], new: Sequence[str], first: int, last: int, start: int, stop: int
           ) -> Iterator[tuple[int, int, int]]:
    """Runs of equal instructions: where they start in both, and how many they are. The last run
    ends with both ranges; it may be empty."""
    if last - first == stop - start and old[first:last] == new[start:stop]:
        yield first, start, last - first
        return
    tail = 0
    while tail < min(last - first, stop - start) and old[last - 1 - tail] == new[stop - 1 - tail]:
        tail += 1
    end, finish = last - tail, stop - tail
    while first < end and start < finish:
        count = 0
        while first + count < end and start + count < finish and (
                old[first + count] == new[start + count]):
            count += 1
        if count:
            yield first, start, count
        first, start = first + count, start + count
        found = _next_alike(old, new, first, end, start, finish)
        if found is None:
            break
        first, start = found
    yield end, finish, tail


def _next_alike(old: Sequence[str], new: Sequence[str], first: int, end: int, start: int,
                finish: int) -> tuple[int, int] | None:
    """The nearest place from which on two instructions are equal."""
    for distance in range(1, _MOST_CHANGED):
        for skipped in range(distance + 1):
            a, b = first + skipped, start + distance - skipped
            if a + 1 < end and b + 1 < finish and old[a] == new[b] and old[a + 1] == new[b + 1]:
                return a, b
    return None
