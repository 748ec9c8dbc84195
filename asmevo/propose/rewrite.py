"""Collects instruction-level changes of one kernel and turns them into non-overlapping edits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from asmevo.codeobject.assembly import Edit
from asmevo.isa.program import Program


class Rewrite:
    """Deletions, replacements and insertions, all addressed by instruction index of one program.

    Neighbouring changes become one edit, except where a branch target lies between them: a label
    inside a replaced range would end up behind the whole replacement.
    """

    def __init__(self, kernel: str, program: Program) -> None:
        self._kernel = kernel
        self._length = len(program)
        self.labelled = {t for t in program.targets if t is not None}
        self.labelled |= set(program.labels)
        self._inserted: dict[int, list[str]] = {}
        self._replaced: dict[int, tuple[str, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._inserted or self._replaced)

    @property
    def size(self) -> int:
        """How many instructions are deleted, replaced or inserted."""
        return len(self._replaced) + sum(len(texts) for texts in self._inserted.values())

    def delete(self, indices: Iterable[int]) -> None:
        """Remove instructions."""
        for index in indices:
            self._replaced[index] = ()

    def replace(self, index: int, *texts: str) -> None:
        """Put ``texts`` in the place of one instruction."""
        self._replaced[index] = texts

    def insert(self, index: int, *texts: str) -> None:
        """Put ``texts`` in front of an instruction, behind the labels that stand there."""
        self._inserted.setdefault(index, []).extend(texts)

    def permute(self, order: Iterable[int], lines: tuple[str, ...]) -> None:
        """Reorder a straight-line range; ``order`` lists its indices in their new sequence."""
        sequence = tuple(order)
        kept = longest_increasing(sequence)
        last = max(kept, default=0)
        pending: list[str] = []
        for index in sequence:
            if index in kept:
                if pending:
                    self.insert(index, *pending)
                    pending = []
            else:
                self.delete((index,))
                pending.append(lines[index])
        if pending:
            # In front of a label that may follow the range.
            self.replace(last, lines[last], *pending)

    def edits(self, reason: str) -> tuple[Edit, ...]:
        """The changes as edits in ascending order."""
        out: list[Edit] = []
        start = stop = -1
        texts: list[str] = []

        def flush() -> None:
            if start >= 0:
                out.append(Edit(self._kernel, start, stop, tuple(texts), reason))

        for index in sorted(self._inserted.keys() | self._replaced.keys()):
            if index != stop or index in self.labelled:
                flush()
                start = stop = index
                texts = []
            texts.extend(self._inserted.get(index, ()))
            if index in self._replaced:
                texts.extend(self._replaced[index])
                stop = index + 1
        flush()
        return tuple(out)


def longest_increasing(sequence: tuple[int, ...]) -> set[int]:
    """The members of a longest increasing subsequence (patience sorting)."""
    tails: list[int] = []
    tail_at: list[int] = []
    previous: list[int] = []
    for position, value in enumerate(sequence):
        slot = bisect_left(tails, value)
        previous.append(tail_at[slot - 1] if slot else -1)
        if slot == len(tails):
            tails.append(value)
            tail_at.append(position)
        else:
            tails[slot] = value
            tail_at[slot] = position
    kept: set[int] = set()
    position = tail_at[-1] if tail_at else -1
    while position >= 0:
        kept.add(sequence[position])
        position = previous[position]
    return kept
