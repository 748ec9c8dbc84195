"""Where a wave certainly has a lane that is on.

The hardware starts no wave without a work-item, so that one lane is on at the entry. Behind an
instruction that may switch off the last lane, only a branch on EXEC tells again whether one is on;
but what was saved of EXEC in front of it is still not zero, and switches lanes on again.
"""

from __future__ import annotations

from asmevo.isa.cfg import Cfg
from asmevo.isa.effects import effects
from asmevo.isa.instruction import Instruction, Operand, OperandKind
from asmevo.isa.mask_regions import mask_regions
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_LO, EXEC_MASK, MODE, SGPR_LIMIT, VCC_MASK, mask

# Pairs of scalar registers that are not zero, as a set of their lower ones.
_Pairs = int
_EXEC: _Pairs = mask(EXEC_LO)
_SCALARS = mask(0, MODE + 1)
# What code can write is there; the trap handler's registers, for one, keep what they have.
_ALL: _Pairs = mask(0, SGPR_LIMIT) | VCC_MASK | EXEC_MASK


def active(program: Program, cfg: Cfg) -> frozenset[int]:
    """The instructions at which EXEC is not zero, whenever and however they are reached."""
    return _Activity(program, cfg).find()


class _Activity:
    """What is known at the start of each block and in front of each instruction only shrinks."""

    def __init__(self, program: Program, cfg: Cfg) -> None:
        self._program, self._cfg = program, cfg
        self._writes = [fact.writes & _SCALARS for fact in effects(program, cfg)]
        self._at_start = dict.fromkeys(cfg.order, _ALL)
        self._at_start[cfg.entry] = _EXEC
        # What leaves the lanes on that were on in front of another instruction, which is on all
        # paths to it: there some may be off in either of two stretches, but none in both.
        self._restores: dict[int, int] = {}
        for region in mask_regions(program, cfg):
            self._restores[region.join] = region.start
            if region.other != region.turn:
                self._restores[region.turn] = region.start
        self._before = dict.fromkeys(self._restores.values(), _ALL)

    def find(self) -> frozenset[int]:
        found: set[int] = set()
        changed = True
        while changed:
            changed = False
            found.clear()
            for number in self._cfg.order:
                changed |= self._pass(number, found)
        return frozenset(found)

    def _pass(self, number: int, found: set[int]) -> bool:
        """Go through a block; whether less is known of anything than before."""
        changed = False
        block, known = self._cfg.blocks[number], self._at_start[number]
        for index in range(block.start, block.end):
            if known & _EXEC:
                found.add(index)
            if index in self._before and self._before[index] & ~known:
                self._before[index] &= known
                changed = True
            if self._writes[index]:
                known = self._after(index, known)
        for successor in block.successors:
            here = known | self._told(block.end - 1, self._cfg.blocks[successor].start)
            if self._at_start[successor] & ~here:
                self._at_start[successor] &= here
                changed = True
        return changed

    def _told(self, branch: int, to: int) -> _Pairs:
        """What is known because a branch goes there."""
        op, target = self._program.instructions[branch].op, self._program.targets[branch]
        if op not in ("s_cbranch_execz", "s_cbranch_execnz") or target == branch + 1:
            return 0
        return _EXEC if (to == target) == (op == "s_cbranch_execnz") else 0

    def _after(self, index: int, known: _Pairs) -> _Pairs:
        written = self._writes[index]
        left = known & ~(written | written >> 1)
        if index in self._cfg.unknown:
            return left
        left |= _made(self._program.instructions[index], known)
        if index in self._restores and self._before[self._restores[index]] & _EXEC:
            left |= _EXEC
        return left


def _made(i: Instruction, known: _Pairs) -> _Pairs:
    """The pairs that an instruction makes other than zero."""
    sources = i.operands[1:]
    if i.op == "s_mov_b64" or i.op == "s_or_b64":
        return _pair(i.operands[0]) if any(_is_set(s, known) for s in sources) else 0
    if i.op.endswith("_saveexec_b64") and not _pair(i.operands[0]) & _EXEC:
        saved = _pair(i.operands[0]) if known & _EXEC else 0
        widens = i.op == "s_or_saveexec_b64" and (known & _EXEC or _is_set(sources[0], known))
        return saved | (_EXEC if widens else 0)
    return 0


def _pair(operand: Operand) -> _Pairs:
    wide = operand.kind is OperandKind.REGISTER and operand.count == 2
    return mask(operand.first) & _ALL if wide else 0


def _is_set(operand: Operand, known: _Pairs) -> bool:
    if operand.kind is OperandKind.CONSTANT:
        return operand.value != 0 and "." not in operand.text
    return bool(_pair(operand) & known)
