"""Folds a lane shuffle into the arithmetic that uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from asmevo.isa.effects import State
from asmevo.isa.instruction import Instruction, Operand, OperandKind
from asmevo.isa.registers import AGPR0, EXEC_MASK, VGPR0, mask
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

# Commutative VOP2 operations, which take a DPP first source (CDNA3 ISA, "VOP2", "DPP").
_COMMUTATIVE = frozenset({
    "v_add_f32", "v_mul_f32", "v_max_f32", "v_min_f32", "v_add_u32", "v_and_b32", "v_or_b32",
    "v_xor_b32", "v_max_i32", "v_max_u32", "v_min_i32", "v_min_u32",
})
# Shuffles in which every lane has a source lane; the others leave some lanes at the old value of
# the destination, which differs between the move and the operation.
_TOTAL = ("quad_perm", "row_ror", "row_mirror", "row_half_mirror", "row_newbcast")
_PARTIAL = State.EXEC_LO_PARTIAL | State.EXEC_HI_PARTIAL
_SHUFFLE = re.compile(r"\s((?:quad_perm|row_|wave_).*)$")


class FuseDpp(Rule):
    """The shuffled copy feeds one commutative operation, which can shuffle its own operand.

    Two instructions of a reduction step become one, and the copy's latency leaves the dependency
    chain.
    """

    name = "fuse-dpp"
    direction = Direction.DEPENDENCY_CHAINS

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        pairs = [
            (move, user, text) for move in range(len(context.program))
            if (found := _user(context, move)) is not None
            for user, text in (found,)
        ]
        if not pairs:
            return
        yield from self._fused(context, pairs)
        if len(pairs) > 1:
            candidates = [
                (pair[:2], proposal) for pair in pairs
                for proposal in self._fused(context, [pair])
            ]
            yield from context.by_weight(candidates)

    def _fused(
        self, context: RuleContext, pairs: list[tuple[int, int, str]],
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        for move, user, text in pairs:
            rewrite.delete((move,))
            rewrite.replace(user, text)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            yield self.proposal(
                preview, f"{len(pairs)} lane shuffle(s) fold into the operation that uses them")


def _user(context: RuleContext, index: int) -> tuple[int, str] | None:
    """The one operation that a DPP move feeds, and its fused text."""
    move = context.program.instructions[index]
    if (move.mnemonic != "v_mov_b32_dpp" or index in context.indexed
            or index in context.cold):
        return None
    shuffle = _SHUFFLE.search(move.text)
    if (shuffle is None or not any(move.modifier(name) is not None for name in _TOTAL)
            or move.modifier("row_mask") != 15 or move.modifier("bank_mask") != 15):
        return None
    # A lane whose source lane is off keeps its old value as well, or gets 0 where bounds are
    # controlled (CDNA3 ISA, "DPP": BOUND_CTRL).
    if move.modifier("bound_ctrl") is None and context.states[index] & _PARTIAL:
        return None
    copy, source = move.operands
    if source.neg or source.abs or copy.first == source.first:
        return None
    copied, original = mask(copy.first), mask(source.first)
    end = context.cfg.blocks[context.cfg.block_of[index]].end
    for user in range(index + 1, end):
        i = context.program.instructions[user]
        if i.reads & copied:
            other = _other_source(i, copy)
            if other is None or user in context.indexed:
                return None
            rewritten = i.operands[0]
            if context.live[user] & copied & ~mask(rewritten.first):
                return None
            text = f"{i.op}_dpp {rewritten.text}, {source.text}, {other.text} {shuffle[1]}"
            return user, text
        if i.writes & (copied | original | EXEC_MASK):
            return None
    return None


def _other_source(instruction: Instruction, copy: Operand) -> Operand | None:
    """The operand beside the copy, where the instruction can take a DPP operand in its place."""
    if instruction.op not in _COMMUTATIVE or instruction.encoding != "e32":
        return None
    a, b = instruction.operands[1:3]
    if a.first == b.first:
        return None
    other = b if a.first == copy.first else a
    is_vgpr = other.kind is OperandKind.REGISTER and VGPR0 <= other.first < AGPR0
    return other if is_vgpr and copy.first in (a.first, b.first) else None
