"""Who wrote and who reads a register, within one straight line of code."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.isa.cfg import Block
from asmevo.isa.registers import EXEC_MASK
from asmevo.propose.rule import RuleContext


@dataclass(frozen=True)
class BlockUses:
    """Definitions and uses within a block, as a lane that is on sees them.

    Answers are ``None`` where the block alone cannot tell.
    """

    context: RuleContext
    block: Block

    @staticmethod
    def around(context: RuleContext, index: int) -> BlockUses:
        return BlockUses(context, context.cfg.blocks[context.cfg.block_of[index]])

    def writer(self, index: int, registers: int) -> int | None:
        """The instruction that wrote all of some registers last, before ``index``."""
        instructions = self.context.program.instructions
        for other in range(index - 1, self.block.start - 1, -1):
            if other in self.context.indexed:
                return None
            if instructions[other].writes & registers:
                whole = instructions[other].writes & registers == registers
                return other if whole else None
        return None

    def readers(self, index: int, registers: int) -> frozenset[int] | None:
        """Who reads what ``index`` wrote to some registers, if only this block does, and only
        before EXEC changes: the lanes that read are those for which it was written.

        A write behind that ends the value's life for the lanes that are still on; others keep it,
        and may read it once they are on again.
        """
        instructions = self.context.program.instructions
        found: set[int] = set()
        left = registers
        for other in range(index + 1, self.block.end):
            i = instructions[other]
            if other in self.context.indexed:
                return None
            if i.reads & left:
                found.add(other)
            if i.writes & EXEC_MASK:
                # Lanes that it switches off may still want the value once they are on again.
                alive = self.context.lanes.before[other] | i.reads
                return None if alive & left else frozenset(found)
            left &= ~i.writes
            if not left:
                return frozenset(found)
        return None if self.context.lanes.after[self.block.end - 1] & left else frozenset(found)

    def keeps(self, start: int, stop: int, registers: int) -> bool:
        """Whether no instruction strictly between two writes any of some registers."""
        instructions = self.context.program.instructions
        return not any(instructions[k].writes & registers or k in self.context.indexed
                       for k in range(start + 1, stop))
