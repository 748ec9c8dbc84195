"""What a kernel looks like after edits, without assembling it."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from asmevo.codeobject.assembly import Edit, EditError, label_of
from asmevo.isa.cfg import Cfg
from asmevo.isa.hazards import hazards
from asmevo.isa.instruction import Instruction, OperandKind
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.violation import Violation
from asmevo.isa.waits import missing_waits

_SHORT = ("s_nop", "s_waitcnt", "s_barrier", "s_branch", "s_cbranch_execz", "s_cbranch_execnz",
          "s_cbranch_scc0", "s_cbranch_scc1", "s_cbranch_vccz", "s_cbranch_vccnz")


@dataclass(frozen=True)
class Preview:
    """A kernel after zero or more sets of edits to a base, each set relative to the result before.

    ``origins`` gives for each instruction the base instruction it still is, or ``None`` for new
    text; ``positions`` gives for each base index (and the end) where its labels stand now. Sizes of
    new instructions are taken from equal text in the base and are otherwise an estimate, so
    ``program.offsets`` are exact only while edits move and repeat existing text. ``marks`` are the
    labels that edits brought in and where they stand.
    """

    kernel: str
    program: Program
    lines: tuple[str, ...]
    origins: tuple[int | None, ...]
    positions: tuple[int, ...]
    base_lines: tuple[str, ...]
    base_labelled: tuple[int, ...]
    marks: tuple[tuple[int, str], ...] = ()

    @staticmethod
    def of(kernel: str, program: Program, lines: tuple[str, ...]) -> Preview:
        """The unedited base."""
        labelled = {t for t in program.targets if t is not None}
        labelled |= set(program.labels)
        return Preview(
            kernel, program, lines, tuple(range(len(lines))), tuple(range(len(lines) + 1)),
            lines, tuple(sorted(labelled)),
        )

    @cached_property
    def cfg(self) -> Cfg:
        return Cfg.of(self.program)

    @cached_property
    def missing(self) -> tuple[Violation, ...]:
        """Missing waits."""
        return missing_waits(self.program)

    @cached_property
    def hazards(self) -> tuple[Violation, ...]:
        """Hazards that lack wait states."""
        return hazards(self.program)

    @cached_property
    def _sizes(self) -> list[int]:
        """Bytes of each instruction: equal texts have the last one's size."""
        size_of = dict(zip(
            self.lines, (b - a for a, b in pairwise(self.program.offsets)), strict=True))
        return [size_of[text] or _estimated_size(i)
                for text, i in zip(self.lines, self.program.instructions, strict=True)]

    @cached_property
    def _known(self) -> dict[str, tuple[Instruction, int]]:
        """Instructions and sizes by text."""
        return dict(zip(
            self.lines, zip(self.program.instructions, self._sizes, strict=True), strict=True))

    def apply(self, edits: Sequence[Edit]) -> Preview:
        """The kernel after edits whose indices refer to this preview.

        Raises `EditError` for edits that overlap, lie outside the kernel or bring in a branch to a
        label that neither a branch of this kernel nor an edit names, and `AsmEvoError` for text
        that does not parse.
        """
        if not edits:
            return self
        old = self.program
        count = len(old)
        lines: list[str] = []
        instructions: list[Instruction] = []
        origins: list[int | None] = []
        leads: list[int | None] = []  # where branches went before
        branches: list[int] = []  # new ones
        sizes: list[int] = []
        # Where each index stands now.
        moved: list[int] = []
        fresh: dict[str, int] = {}

        def keep(begin: int, end: int) -> None:
            # What an edit put in front of the first one that is kept comes before it.
            moved.extend(range(len(lines) + len(moved) - begin, len(lines) + end - begin))
            lines.extend(self.lines[begin:end])
            instructions.extend(old.instructions[begin:end])
            origins.extend(self.origins[begin:end])
            leads.extend(old.targets[begin:end])
            sizes.extend(self._sizes[begin:end])

        position = 0
        for edit in sorted(edits, key=lambda e: (e.start, e.stop)):
            if not position <= edit.start <= edit.stop <= count:
                raise EditError(
                    f"edit of instructions {edit.start} to {edit.stop} overlaps another edit or "
                    f"lies outside the kernel's {count} instructions"
                )
            keep(position, edit.start)
            if len(moved) == edit.start:
                moved.append(len(lines))
            for text in edit.lines:
                if name := label_of(text):
                    fresh[name] = len(lines)
                    continue
                known = self._known.get(text)
                instruction = parse(text) if known is None else known[0]
                if instruction.is_branch:
                    branches.append(len(lines))
                lines.append(text)
                instructions.append(instruction)
                origins.append(None)
                leads.append(None)
                sizes.append((known and known[1]) or _estimated_size(instruction))
            moved.extend([len(lines)] * (edit.stop - len(moved)))
            position = edit.stop
        keep(position, count)
        if len(moved) == count:
            moved.append(len(lines))

        offsets = list(itertools.accumulate(sizes, initial=0))
        named = {**{name: moved[at] for name, at in self._named().items()}, **fresh}
        targets = [None if lead is None else moved[lead] for lead in leads]
        for at in branches:
            targets[at] = _target(lines[at], named)
        marks = tuple(sorted((
            *((moved[at], name) for at, name in self.marks),
            *((at, name) for name, at in fresh.items()))))
        labels = {moved[index]: name for index, name in old.labels.items()}
        return Preview(
            self.kernel,
            Program(tuple(instructions), tuple(offsets), tuple(targets), labels, old.isa,
                    moved[old.entry]),
            tuple(lines),
            tuple(origins),
            tuple(moved[p] for p in self.positions),
            self.base_lines,
            self.base_labelled,
            marks,
        )

    def _named(self) -> dict[str, int]:
        """Labels that branches name, and those that edits brought in, with their places."""
        found = {name: at for at, name in self.marks}
        for line, target in zip(self.lines, self.program.targets, strict=True):
            if target is not None:
                found[line.split()[-1]] = target
        return found

    def fresh_labels(self, count: int) -> list[str]:
        """Names for labels that the kernel does not have."""
        taken = set(self._named()) | set(self.program.labels.values())
        # A label may outlive its last branch: names differ from one text to the next.
        mark = zlib.crc32("\n".join(self.lines).encode())
        names = (f".L{mark:08x}_{k}" for k in itertools.count())
        return list(itertools.islice((n for n in names if n not in taken), count))

    def edits(self, reason: str) -> tuple[Edit, ...]:
        """Edits that turn the base into this preview, merged and clear of labels."""
        kept = [(o, i) for i, o in enumerate(self.origins) if o is not None]
        bounds = sorted({0, len(self.base_lines), *self.base_labelled})
        out: list[Edit] = []
        at = 0
        marks: dict[int, list[str]] = {}
        for place, name in self.marks:
            marks.setdefault(place, []).append(f"{name}:")
        for begin, end in pairwise(bounds):
            segment: list[tuple[int, int]] = []
            while at < len(kept) and kept[at][0] < end:
                segment.append(kept[at])
                at += 1
            last = len(self.lines) if end == len(self.base_lines) else self.positions[end]
            segment.append((end, last))
            base, now = begin, self.positions[begin]
            for origin, index in segment:
                if origin == base and index == now and index not in marks:
                    base, now = origin + 1, index + 1
                    continue
                texts = tuple(
                    text for k in range(now, index) for text in (*marks.get(k, ()), self.lines[k]))
                if origin < end:
                    texts += tuple(marks.get(index, ()))
                if base < origin or texts:
                    if base == origin == end:
                        # New text at the end of a segment belongs in front of the next label.
                        base -= 1
                        texts = (self.base_lines[base], *texts)
                    out.append(Edit(self.kernel, base, origin, texts, reason))
                base, now = origin + 1, index + 1
        return tuple(out)


def _target(line: str, named: Mapping[str, int]) -> int:
    """Where a new branch goes."""
    label = line.split()[-1]
    if label not in named:
        raise EditError(f"a preview cannot place the branch '{line}'")
    return named[label]


def _estimated_size(instruction: Instruction) -> int:
    if instruction.op in _SHORT:
        return 4
    literal = any(
        o.kind is OperandKind.CONSTANT and o.text.startswith("0x") for o in instruction.operands
    )
    return 4 if instruction.encoding == "e32" and not literal else 8
