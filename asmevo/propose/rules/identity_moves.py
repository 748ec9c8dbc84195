"""Removes moves and integer arithmetic that give back what they are given."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.instruction import Instruction, Operand, OperandKind
from asmevo.isa.registers import mask
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import separate
from asmevo.propose.rule import Rule, RuleContext

_MOVES = frozenset({"s_mov_b32", "s_mov_b64", "v_mov_b32", "v_mov_b64", "v_accvgpr_mov_b32"})

_ALL_ONES = 0xFFFFFFFF
# Neutral element of a commutative operation. Floating point has none here: f32 addition and
# multiplication flush denormals and quiet NaNs.
_COMMUTATIVE = {
    "s_add_u32": 0, "s_add_i32": 0, "v_add_u32": 0, "v_add_i32": 0,
    "s_or_b32": 0, "v_or_b32": 0, "s_xor_b32": 0, "v_xor_b32": 0, "s_or_b64": 0, "s_xor_b64": 0,
    "s_and_b32": _ALL_ONES, "v_and_b32": _ALL_ONES, "s_and_b64": _ALL_ONES,
    "s_mul_i32": 1, "v_mul_lo_u32": 1,
    "s_max_u32": 0, "v_max_u32": 0, "s_min_u32": _ALL_ONES, "v_min_u32": _ALL_ONES,
}
# Operation -> (index of the value among the sources, neutral second operand).
_ORDERED = {
    "s_sub_u32": (0, 0), "s_sub_i32": (0, 0), "v_sub_u32": (0, 0), "v_subrev_u32": (1, 0),
    "s_lshl_b32": (0, 0), "s_lshr_b32": (0, 0), "s_ashr_i32": (0, 0), "s_lshl_b64": (0, 0),
    "s_lshr_b64": (0, 0), "v_lshlrev_b32": (1, 0), "v_lshrrev_b32": (1, 0),
    "v_ashrrev_i32": (1, 0),
}


class IdentityMoves(Rule):
    """The destination already holds the result, so the instruction changes nothing.

    Applies to a move of a register to itself and to an integer operation with its neutral element,
    unless another result of it (SCC, a carry) is used.
    """

    name = "identity-moves"
    direction = Direction.SIMPLIFICATION

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        found = [
            index for index, instruction in enumerate(context.program.instructions)
            if is_identity(instruction, context.live[index]) and index not in context.indexed
            and index not in context.cold
        ]
        if not found:
            return
        yield self._removal(context, found)
        if len(found) > 1:
            yield from context.by_weight(((i,), self._removal(context, [i])) for i in found)

    def _removal(self, context: RuleContext, indices: list[int]) -> Proposal:
        rewrite = context.rewrite()
        rewrite.delete(indices)
        # They may have stood between a producer and its consumer.
        preview = separate(context, context.preview.apply(rewrite.edits(self.name)))
        texts = "; ".join(dict.fromkeys(context.lines[i] for i in indices))
        return self.proposal(
            preview, f"{len(indices)} instruction(s) write back the value they read: {texts}")


def is_identity(instruction: Instruction, live_after: int) -> bool:
    """Whether an instruction leaves its destination, and every other live register, unchanged."""
    operands = instruction.operands
    if instruction.encoding in ("dpp", "sdwa") or instruction.modifiers or not operands:
        return False
    destination = operands[0]
    if destination.kind is not OperandKind.REGISTER:
        return False
    if instruction.writes & ~mask(destination.first, destination.count) & live_after:
        return False
    sources = operands[1:]
    if any(s.neg or s.abs or s.sext for s in sources):
        return False
    if instruction.op in _MOVES:
        return len(sources) == 1 and _same(sources[0], destination)
    if len(sources) != 2:
        return False
    wide = instruction.op.endswith("b64")
    if instruction.op in _COMMUTATIVE:
        neutral = _COMMUTATIVE[instruction.op]
        return any(
            _same(sources[k], destination) and _is_constant(sources[1 - k], neutral, wide)
            for k in (0, 1)
        )
    if instruction.op in _ORDERED:
        value, neutral = _ORDERED[instruction.op]
        return (_same(sources[value], destination)
                and _is_constant(sources[1 - value], neutral, wide))
    return False


def _same(a: Operand, b: Operand) -> bool:
    return a.kind is OperandKind.REGISTER and (a.first, a.count) == (b.first, b.count)


def _is_constant(operand: Operand, value: int, wide: bool) -> bool:
    if operand.kind is not OperandKind.CONSTANT or operand.value & _ALL_ONES != value:
        return False
    # A literal of a 64-bit operation is zero-extended; only the inline -1 has 64 ones.
    return value != _ALL_ONES or operand.text == "-1" or not wide
