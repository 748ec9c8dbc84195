"""A kernel as a sequence of decoded instructions with resolved branch targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asmevo.isa.errors import ParseError
from asmevo.isa.instruction import Instruction, Operand, OperandKind
from asmevo.isa.parse import parse

_WORD = 4
# gfx950's scaled matrix operations have four words.
_SIZES = frozenset({4, 8, 16})


@dataclass(frozen=True)
class Program:
    """The instructions of one kernel in address order, and of functions it may call.

    ``offsets`` are byte offsets from the kernel's entry, one per instruction plus one for the end;
    functions that lie in front of the kernel have negative ones. ``targets`` gives, per
    instruction, the index a branch goes to, or ``None``. ``labels`` names instructions by index.
    ``isa`` is LLVM's name of the processor, which decides wait states, and ``entry`` the index of
    the kernel's first instruction.
    """

    instructions: tuple[Instruction, ...]
    offsets: tuple[int, ...]
    targets: tuple[int | None, ...]
    labels: Mapping[int, str]
    isa: str = "gfx942"
    entry: int = 0

    def __len__(self) -> int:
        return len(self.instructions)

    @staticmethod
    def from_disassembly(
            rows: Sequence[tuple[int, int, str]], labels: Mapping[int, str], *,
            isa: str = "gfx942") -> Program:
        """Build from ``(byte offset, size, LLVM text)`` rows; ``labels`` names byte offsets.

        Branch targets may be written as LLVM's numeric word offset or as one of the ``labels``. The
        entry is at offset 0, or the first row when there is no such offset. Raises ParseError when
        rows overlap, a label is undefined, or a branch leaves the rows or lands inside an
        instruction.
        """
        offsets: list[int] = []
        instructions: list[Instruction] = []
        end = rows[0][0] if rows else 0
        for offset, size, text in rows:
            if offset < end or size not in _SIZES:
                raise ParseError(f"instruction at offset {offset} overlaps or has a wrong size")
            offsets.append(offset)
            end = offset + size
            instructions.append(parse(text))
        index_of = {offset: index for index, offset in enumerate([*offsets, end])}
        named = {name: offset for offset, name in labels.items()}
        targets = tuple(
            _target(instruction, offset, index_of, named) if instruction.is_branch else None
            for instruction, offset in zip(instructions, offsets, strict=True))
        return Program(
            tuple(instructions), (*offsets, end), targets,
            {index_of[offset]: name for offset, name in labels.items() if offset in index_of},
            isa, index_of.get(0, 0) if offsets else 0)


def _target(instruction: Instruction, offset: int, index_of: Mapping[int, int],
            named: Mapping[str, int]) -> int | None:
    operand = next((o for o in instruction.operands if o.kind is OperandKind.TARGET), None)
    if operand is None:
        return None
    destination = _destination(operand, offset, named)
    index = index_of.get(destination)
    if index is None or index == len(index_of) - 1:
        raise ParseError(
            f"'{instruction.text}' at offset {offset} branches to {destination}, "
            "which is not an instruction")
    return index


def _destination(operand: Operand, offset: int, named: Mapping[str, int]) -> int:
    if operand.text in named:
        return named[operand.text]
    if operand.text[0] in "-0123456789":
        return offset + _WORD * (1 + operand.value)
    raise ParseError(f"label '{operand.text[:60]}' is not defined")
