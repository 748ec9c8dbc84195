"""Whether the oracle's dispatches go both ways at the conditional branches that a candidate adds.

A branch on a condition that the original tests as well may lead somewhere else, or come once more:
that is how loops are unrolled, peeled and pipelined. But where no dispatch ever takes it, or none
passes it by, equality says nothing of what would follow.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import DeviceFault, LoadedKernel
from asmevo.gates.baseline import Baseline
from asmevo.gates.condition import condition
from asmevo.isa.cfg import Cfg
from asmevo.isa.program import Program

# A branch to itself: ``s_branch`` and, in the lower half of any branch, its distance of -1.
_STAY = (0xBF82FFFF).to_bytes(4, "little")
_BACK = (0xFFFF).to_bytes(2, "little")
_FILL = (0xBF800000).to_bytes(4, "little")  # s_nop 0


def texts(code: Program) -> Sequence[str]:
    """Branches without their distance, which every edit between them and their target changes."""
    return [i.op if target is not None else i.text
            for i, target in zip(code.instructions, code.targets, strict=True)]


def differing(original: Program, candidate: Program) -> Iterator[tuple[str, int, int, int, int]]:
    """As `difflib.SequenceMatcher.get_opcodes`, of the instructions' texts."""
    old, new = texts(original), texts(candidate)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if head:
        yield "equal", 0, head, 0, head
    matcher = difflib.SequenceMatcher(
        None, old[head:len(old) - tail], new[head:len(new) - tail], autojunk=False)
    for tag, start, stop, first, last in matcher.get_opcodes():
        yield tag, head + start, head + stop, head + first, head + last
    if tail:
        yield "equal", len(old) - tail, len(old), len(new) - tail, len(new)


def changed_branches(original: Program, candidate: Program) -> Iterator[tuple[int, int | None]]:
    """The candidate's branches that are not the original's, or lead elsewhere, and which of the
    original's they were."""
    if _shape(original) == _shape(candidate):
        return
    place: dict[int, int] = {}
    for tag, start, stop, first, _ in differing(original, candidate):
        if tag == "equal":
            place.update(zip(range(first, first + stop - start), range(start, stop), strict=True))
    # A branch to what was put in front of its target, or in its place, leads to where it did.
    kept = sorted(place.values())

    def behind(target: int | None) -> int:
        at = bisect_left(kept, len(original) if target is None else target)
        return kept[at] if at < len(kept) else len(original)

    leads: dict[int, int] = {}
    following = len(original)
    for index in range(len(candidate) - 1, -1, -1):
        leads[index] = following = place.get(index, following)
    for index, target in enumerate(candidate.targets):
        if target is None:
            continue
        here = place.get(index)
        if here is None or behind(original.targets[here]) != leads[target]:
            yield index, here


def _shape(code: Program) -> tuple[object, ...]:
    """Where each block leads to, and by which operation."""
    return tuple((block.successors, code.instructions[block.end - 1].op
                  if code.targets[block.end - 1] is not None else "")
                 for block in Cfg.of(code).blocks)


class Edges:
    """Runs a candidate with one edge at a time leading nowhere."""

    def __init__(self, baseline: Baseline, code_object: CodeObject, program: Program) -> None:
        self._baseline = baseline
        self._code_object = code_object
        self._program = program
        self._counts: dict[int, int] = {}

    def missed(self, index: int) -> str | None:
        """What no dispatch does at a branch; ``None`` if both ways are gone.

        Raises `DeviceFault` where the candidate itself does.
        """
        offsets = self._program.offsets
        if not self._stays(offsets[index], _BACK):
            return "takes"
        size = offsets[index + 2] - offsets[index + 1]
        if not self._stays(offsets[index + 1], _STAY + _FILL * (size // 4 - 1)):
            return "passes by"
        return None

    def reached(self, index: int) -> bool:
        """Whether any dispatch executes an instruction."""
        offsets = self._program.offsets
        size = offsets[index + 1] - offsets[index]
        return self._stays(offsets[index], _STAY + _FILL * (size // 4 - 1))

    def _stays(self, at: int, code: bytes) -> bool:
        """Whether some dispatch never ends with ``code`` at ``at``."""
        kernel = self._code_object.kernel(self._baseline.kernel)
        start = self._code_object.section(".text").offset + kernel.entry + at
        data = bytearray(self._code_object.data)
        data[start:start + len(code)] = code
        loaded = self._load(CodeObject.parse(bytes(data)))
        # The cheapest dispatches first: most edges are taken in any of them.
        dispatches = range(len(self._baseline.dispatches))
        return any(self._ends(loaded, index) is None
                   for index in sorted(dispatches, key=self._baseline.instruction_limit))

    def _ends(self, loaded: LoadedKernel, index: int) -> int | None:
        """How many instructions a dispatch takes; ``None`` for more than the candidate's."""
        most = self._baseline.instruction_limit(index)
        if loaded is not self._own and index not in self._counts:
            self._counts[index] = self._ends(self._own, index) or most
        first = condition(0, self._baseline.seed)
        limit = self._counts.get(index, most)
        try:
            result = loaded.run(self._baseline.prepared(index, 0), first.state, limit=limit)
        except DeviceFault as fault:
            if fault.kind == "budget":
                return None
            raise
        return result.instructions

    @cached_property
    def _own(self) -> LoadedKernel:
        return self._load(self._code_object)

    def _load(self, code_object: CodeObject) -> LoadedKernel:
        return self._baseline.candidate_device.load(code_object, self._baseline.kernel)
