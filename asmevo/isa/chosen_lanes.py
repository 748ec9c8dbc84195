"""What a selection by lanes cannot see of the register that it takes where its mask is off.

A stretch of code for the lanes of a mask may use a register for something of its own. A selection
by the same mask does not look at it in these lanes: there it takes its other operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction, OperandKind
from asmevo.isa.mask_pairs import MaskPair, only_narrows, paired_masks
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK, SGPR_LIMIT


class LaneMask(NamedTuple):
    """What two words of a mask are, the instruction that made them, and the one that put them where
    they are, which may be a move.
    """

    words: tuple[object, ...]
    made: int
    put: int


class ChosenLanes:
    """``mask_of`` gives what an operand of an instruction is, ``None`` where it may come from
    several places; ``reaching`` the writes of a register that lanes may hold.
    """

    def __init__(self, program: Program, cfg: Cfg, mask_of: Callable[[int, int], LaneMask | None],
                 reaching: Callable[[int, int], set[int]]) -> None:
        self._program, self._cfg = program, cfg
        self._mask_of, self._reaching = mask_of, reaching
        pairs = paired_masks(program, cfg)
        self._joins = {pair.join: pair for pair in pairs}
        self._around: dict[int, list[MaskPair]] = {}
        for pair in pairs:
            for inside in pair.inside:
                self._around.setdefault(inside, []).append(pair)

    def unseen(self, index: int, register: int, writes: set[int]) -> set[int]:
        """Those of the ``writes`` of a register that only lanes hold which a selection leaves out.
        """
        i = self._program.instructions[index]
        if not is_choice(i) or i.operands[1].first != register or (
                i.operands[2].first == register and i.operands[2].count > 0):
            return set()
        mask = self._mask_of(index, 3)
        if mask is None:
            return set()
        return {w for w in writes if w >= 0 and self._is_inside(index, w, register, mask)}

    def _is_inside(self, index: int, write: int, register: int, mask: LaneMask) -> bool:
        """Whether a write is in a stretch for the lanes of ``mask``, and gone when the stretch is
        run again.

        The mask is made, put where the selection finds it and applied in one block, so that it is
        of the same turn of a loop.
        """
        if not self._program.instructions[write].reads & EXEC_MASK:
            return False
        block_of = self._cfg.block_of
        for pair in self._around.get(write, ()):
            applied = self._mask_of(pair.start, 1)
            if (applied is not None and applied.words == mask.words
                    and mask.made <= mask.put and mask.made <= applied.put < pair.start
                    and block_of[mask.made] == block_of[mask.put] == block_of[applied.put]
                    == block_of[pair.start]
                    and write not in self._reaching(pair.start, register)
                    and self._was_on(index, pair)):
                return True
        return False

    def _was_on(self, index: int, pair: MaskPair) -> bool:
        """Whether lanes that are on at an instruction were on when the stretch was last run.

        A lane that left a loop has what an earlier turn gave it, for which the mask was another.
        """
        code = self._program.instructions
        seen: set[int] = set()
        pending = [index]
        while pending:
            for here in self._cfg.previous_indices(pending.pop()):
                if here in seen or here == pair.join:
                    continue
                seen.add(here)
                if here in self._cfg.unknown:
                    return False
                if code[here].writes & EXEC_MASK and not only_narrows(code[here]):
                    other = self._joins.get(here)
                    if other is None or pair.join in other.inside:
                        return False
                    here = other.start
                pending.append(here)
        return True


def is_choice(i: Instruction) -> bool:
    """A selection whose mask is in scalar registers and named."""
    return (i.op == "v_cndmask_b32" and len(i.operands) == 4 and not i.modifiers
            and i.encoding not in ("dpp", "sdwa") and i.operands[3].kind is OperandKind.REGISTER
            and i.operands[3].count == 2 and 0 <= i.operands[3].first < SGPR_LIMIT
            and i.operands[1].kind is OperandKind.REGISTER)
