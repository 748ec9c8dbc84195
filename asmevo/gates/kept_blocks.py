"""Which instructions of an original an edit changes, block by block.

A longest common subsequence of all instructions is the wrong measure where code moves: when more
of it crosses a block than the block has, the block is what seems to have moved. So blocks that are
the same to the letter are found first, in their order, and only what is between them is compared
instruction by instruction.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from asmevo.gates.edges import texts
from asmevo.isa.cfg import Cfg
from asmevo.isa.program import Program

Block = tuple[int, int, tuple[str, ...]]


def changed_instructions(original: Program, candidate: Program) -> Iterator[int]:
    """Instructions of the original that are gone, and those at which something was put in."""
    old, new = texts(original), texts(candidate)
    blocks, others = _blocks(original, old), _blocks(candidate, new)
    # Whatever is at both ends is not looked at again: kernels are long, and edits short.
    head = _common(blocks, others)
    tail = _common(blocks[head:][::-1], others[head:][::-1])
    matcher = difflib.SequenceMatcher(
        None, [b[2] for b in blocks[head:len(blocks) - tail]],
        [b[2] for b in others[head:len(others) - tail]], autojunk=False)
    for tag, first, last, start, stop in matcher.get_opcodes():
        if tag == "equal":
            continue
        begin = _start(blocks, head + first, len(old))
        end = _start(blocks, head + last, len(old))
        yield from _between(old, begin, end, new[_start(others, head + start, len(new)):
                                                 _start(others, head + stop, len(new))])


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


def _between(old: Sequence[str], begin: int, end: int, new: Sequence[str]) -> Iterator[int]:
    """What is put in behind the last instruction is part of the block that this ends."""
    last = max(end - 1, begin)
    matcher = difflib.SequenceMatcher(None, old[begin:end], new, autojunk=False)
    for tag, start, stop, _, _ in matcher.get_opcodes():
        if tag != "equal":
            here = min(begin + start, last)
            yield from range(here, max(begin + stop, here + 1))
