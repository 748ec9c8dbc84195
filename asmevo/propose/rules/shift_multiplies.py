"""Multiplies integers by constants with shifts and additions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from asmevo.isa.dataflow import ENTRY, reaching_definitions
from asmevo.isa.instruction import Instruction, Operand, OperandKind
from asmevo.isa.registers import AGPR0, VGPR0, mask
from asmevo.propose.block_uses import BlockUses
from asmevo.propose.free_registers import text, vector
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

_ALL_ONES = 0xFFFFFFFF


class ShiftMultiplies(Rule):
    """A 32-bit multiplication by a constant takes four times as long as an addition or a shift.

    Covers powers of two and sums of two of them. The constant is written in the instruction or in
    an SGPR that nothing but one ``s_mov_b32`` or ``s_movk_i32`` sets. Results are the same for
    every input: both forms are modulo 2^32.
    """

    name = "shift-multiplies"
    direction = Direction.SIMPLIFICATION

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        found = [
            (index, texts) for index, i in enumerate(context.program.instructions)
            if i.op == "v_mul_lo_u32" and index not in context.indexed
            and index not in context.cold and (texts := _texts(context, index)) is not None
        ]
        if not found:
            return
        yield from self._shifted(context, found)
        if len(found) > 1:
            yield from context.by_weight(
                ((pair[0],), proposal) for pair in found
                for proposal in self._shifted(context, [pair]))

    def _shifted(
        self, context: RuleContext, found: Sequence[tuple[int, tuple[str, ...]]],
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        for index, texts in found:
            rewrite.replace(index, *texts)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            yield self.proposal(
                preview, f"{len(found)} multiplication(s) by a constant become shifts and"
                " additions, which issue four times as fast")


def _texts(context: RuleContext, index: int) -> tuple[str, ...] | None:
    """The shifts and additions that give the same product, ``None`` when there are no such."""
    i = context.program.instructions[index]
    if len(i.operands) != 3 or i.modifiers:
        return None
    to, *sources = i.operands
    for value, factor in (sources, sources[::-1]):
        if value.kind is OperandKind.REGISTER and VGPR0 <= value.first < AGPR0:
            constant = constant_of(context, index, factor)
            if constant is not None:
                return product(to.text, value.text, constant, _spare(context, index, to, value))
    return None


def _spare(context: RuleContext, index: int, to: Operand, value: Operand) -> str | None:
    """A register for a partial product."""
    if to.first != value.first:
        return to.text
    free = vector(context.free.during((index,)))
    return None if free is None else text(free)


def product(to: str, value: str, constant: int, spare: str | None) -> tuple[str, ...] | None:
    """``to = value * constant`` modulo 2^32 in at most two instructions."""
    if constant == 0:
        return (f"v_mov_b32_e32 {to}, 0",)
    bits = [k for k in range(32) if constant >> k & 1]
    if len(bits) == 1:
        return (f"v_lshlrev_b32_e32 {to}, {bits[0]}, {value}",)
    if len(bits) == 2:
        low, high = bits
        if low == 0:
            return (f"v_lshl_add_u32 {to}, {value}, {high}, {value}",)
        if spare is not None:
            return (f"v_lshlrev_b32_e32 {spare}, {low}, {value}",
                    f"v_lshl_add_u32 {to}, {value}, {high}, {spare}")
    if constant & (constant + 1) == 0 and spare is not None:  # 2^k - 1
        return (f"v_lshlrev_b32_e32 {spare}, {len(bits)}, {value}",
                f"v_sub_u32_e32 {to}, {spare}, {value}")
    return None


def constant_of(context: RuleContext, index: int, operand: Operand) -> int | None:
    """The constant that an operand of an instruction is, directly or by way of an SGPR."""
    if operand.neg or operand.abs or operand.sext:
        return None
    if operand.kind is OperandKind.CONSTANT:
        return operand.value & _ALL_ONES
    if operand.kind is not OperandKind.REGISTER or operand.first >= VGPR0 or operand.count != 1:
        return None
    registers = mask(operand.first)
    near = BlockUses.around(context, index).writer(index, registers)
    if near is not None:
        return _moved(context.program.instructions[near])
    makers = reaching_definitions(context.program, index, registers)
    if len(makers) != 1 or makers[0] == ENTRY or makers[0] in context.indexed:
        return None
    maker = context.program.instructions[makers[0]]
    return _moved(maker) if maker.writes & registers == registers else None


def _moved(i: Instruction) -> int | None:
    if i.op not in ("s_mov_b32", "s_movk_i32") or len(i.operands) != 2:
        return None
    source = i.operands[1]
    if source.kind is not OperandKind.CONSTANT:
        return None
    value = source.value & _ALL_ONES
    if i.op == "s_movk_i32" and value & 0x8000 and value <= 0xFFFF:
        value |= 0xFFFF0000
    return value
