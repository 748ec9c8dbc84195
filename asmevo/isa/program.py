"""A kernel as a sequence of decoded instructions with resolved branch targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction


@dataclass(frozen=True)
class Program:
    """The instructions of one kernel in address order.

    ``offsets`` are byte offsets from the kernel's entry, one per instruction plus one for the end.
    ``targets`` gives, per instruction, the index a branch goes to, or ``None``.
    """

    instructions: tuple[Instruction, ...]
    offsets: tuple[int, ...]
    targets: tuple[int | None, ...]
    labels: Mapping[int, str]

    def __len__(self) -> int:
        return len(self.instructions)

    @staticmethod
    def from_disassembly(rows: Sequence[tuple[int, int, str]], labels: Mapping[int, str]) -> Program:
        """Build from ``(byte offset, size, LLVM text)`` rows; ``labels`` maps byte offsets to names."""
        raise NotImplementedError
