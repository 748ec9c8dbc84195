"""Which instructions of an original an edit changes, block by block.

A longest common subsequence of all instructions is the wrong measure where code moves: when more
of it crosses a block than the block has, the block is what seems to have moved. So blocks that are
the same to the letter are found first, in their order, and only what is between them is compared
instruction by instruction.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmevo.gates.edges import texts
from asmevo.isa.cfg import Cfg
from asmevo.isa.program import Program

Block = tuple[int, int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block of a candidate of which the original has nothing: its first instruction, and those
    of the original that it was put behind and in front of."""

    first: int
    behind: int
    front: int


@dataclass(frozen=True, slots=True)
class Changes:
    """Instructions of the original that are gone or have new ones in their block, and new blocks.
    """

    changed: tuple[int, ...]
    blocks: tuple[NewBlock, ...]


def changes(original: Program, candidate: Program) -> Changes:
    lines = texts(candidate)
    place = dict(_kept(original, candidate, texts(original), lines))
    remaining = set(place.values())
    changed = [k for k in range(len(original)) if k not in remaining]
    new = []
    kept = sorted(place)
    for start, end, _ in _blocks(candidate, lines):
        inside = [k for k in range(start, end) if k in place]
        if not inside:
            at = bisect_left(kept, start)
            behind = place[kept[at - 1]] if at else 0
            new.append(NewBlock(start, behind, place[kept[at]] if at < len(kept) else behind))
        elif len(inside) < end - start:
            changed.append(place[inside[0]])
    return Changes(tuple(changed), tuple(new))


def _kept(original: Program, candidate: Program, old: Sequence[str], new: Sequence[str]
          ) -> Iterator[tuple[int, int]]:
    """Instructions of a candidate, and those of the original that they are."""
    blocks, others = _blocks(original, old), _blocks(candidate, new)
    # Whatever is at both ends is not looked at again: kernels are long, and edits short.
    head = _common(blocks, others)
    tail = _common(blocks[head:][::-1], others[head:][::-1])
    middle = difflib.SequenceMatcher(
        None, [b[2] for b in blocks[head:len(blocks) - tail]],
        [b[2] for b in others[head:len(others) - tail]], autojunk=False).get_opcodes()
    opcodes = [("equal", 0, head, 0, head), *(
        (tag, head + a, head + b, head + c, head + d) for tag, a, b, c, d in middle),
        ("equal", len(blocks) - tail, len(blocks), len(others) - tail, len(others))]
    for tag, first, last, start, stop in opcodes:
        begin, end = _start(blocks, first, len(old)), _start(blocks, last, len(old))
        here, there = _start(others, start, len(new)), _start(others, stop, len(new))
        if tag == "equal":
            yield from zip(range(here, there), range(begin, end), strict=True)
            continue
        matcher = difflib.SequenceMatcher(None, old[begin:end], new[here:there], autojunk=False)
        for match in matcher.get_matching_blocks():
            yield from ((here + match.b + k, begin + match.a + k) for k in range(match.size))


def _blocks(program: Program, lines: Sequence[str]) -> list[Block]:
    return [(b.start, b.end, tuple(lines[b.start:b.end]))
            for b in sorted(Cfg.of(program).blocks, key=lambda b: b.start)]


def _common(blocks: Sequence[Block], others: Sequence[Block]) -> int:
    count = 0
    while count < min(len(blocks), len(others)) and blocks[count][2] == others[count][2]:
        count += 1
    return count


def _start(blocks: Sequence[Block], number: int, end: int) -> int:
    return blocks[number][0] if number < len(blocks) else end
