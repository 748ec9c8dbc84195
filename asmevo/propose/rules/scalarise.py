"""Does on scalars what a vector operation does alike in all lanes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from asmevo.isa.dataflow import reaching_definitions, users
from asmevo.isa.effects import State
from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.parse import parse
from asmevo.isa.registers import (
    AGPR0,
    EXEC_LO,
    EXEC_MASK,
    SCC_MASK,
    SGPR_LIMIT,
    VCC_MASK,
    VGPR0,
    mask,
)
from asmevo.propose.block_uses import BlockUses
from asmevo.propose.free_registers import scalar, text
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext
from asmevo.propose.uniform_ops import SCALAR_FORMS, ScalarForm

_PARTIAL = State.EXEC_LO_PARTIAL | State.EXEC_HI_PARTIAL
# Sources of 32 bits, in which a constant means what it means in a move.
_WORDS = re.compile(r"_[fuib]32(_|$)")
_NARROW = re.compile(r"(16|64|_i8|_u8|bf8|fp8|f4|f6)")
_SWAPPED = {
    **{op: op for op in (
        "v_add_f32", "v_mul_f32", "v_add_u32", "v_mul_i32_i24", "v_mul_u32_u24", "v_min_i32",
        "v_max_i32", "v_min_u32", "v_max_u32", "v_and_b32", "v_or_b32", "v_xor_b32", "v_xnor_b32",
        "v_fmac_f32")},
    "v_sub_f32": "v_subrev_f32", "v_subrev_f32": "v_sub_f32",
    "v_sub_u32": "v_subrev_u32", "v_subrev_u32": "v_sub_u32",
}
_TWO_RESULTS = ("v_add_co", "v_sub_co", "v_subrev_co", "v_addc_co", "v_subb_co", "v_subbrev_co",
                "v_div_scale")
# Operations with rules of their own for their operands.
_ELSEWHERE = ("v_pk_", "v_fmaak", "v_fmamk", "v_madak", "v_madmk", "v_accvgpr", "v_swap",
              "v_movrel", "v_writelane", "v_permlane", "v_mac_", "v_dot")
_READ_A_LANE = ("v_readfirstlane_b32", "v_readlane_b32")


class Scalarise(Rule):
    """Integer work on scalars and constants, and on results of such, leaves the vector unit.

    All uses of a result must take a scalar in its place: one scalar is all that a vector operation
    reads (CDNA3 ISA, "Constant bus"). They are executed by lanes for which the result was written:
    in its block before EXEC changes, or anywhere when all lanes were on. A copy of a scalar that
    stays as it is, and of an inline constant, needs no instruction at all.
    """

    name = "scalarise"
    direction = Direction.SIMPLIFICATION

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        groups = _groups(context, _values(context))
        values = sorted((v for group in groups for v in group), key=lambda v: v.index)
        if not values:
            return
        yield from self._scalarised(context, values)
        if len(groups) > 1:
            for group in sorted(
                    groups, key=lambda g: (-context.weight(v.index for v in g), g[0].index)):
                yield from self._scalarised(context, group)

    def _scalarised(self, context: RuleContext, values: Sequence[_Value]) -> Iterator[Proposal]:
        texts = _texts(context, values)
        if texts is None:
            return
        rewrite = context.rewrite()
        for index, lines in sorted(texts.items()):
            rewrite.replace(index, *lines)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            dropped = sum(v.form is None for v in values)
            yield self.proposal(
                preview, f"{len(values)} vector operation(s) do the same in all lanes: "
                f"{len(values) - dropped} are done on scalars, {dropped} are not needed")


@dataclass(frozen=True)
class _Value:
    """A uniform result: who computes it in which VGPR, who reads it, and what stands for it.

    Without a ``form`` nothing has to compute it.
    """

    index: int
    register: int
    readers: frozenset[int]
    stand_in: str
    form: ScalarForm | None


def _values(context: RuleContext) -> list[_Value]:
    """All that can be done on scalars."""
    found: dict[int, _Value] = {}
    busy: dict[int, int] = {}
    untouched = context.free.untouched()
    for index, i in enumerate(context.program.instructions):
        if not _may(context, index, i):
            continue
        known = {v.register: v.stand_in for v in found.values() if index in v.readers}
        if not all(_is_uniform(o, known) for o in i.operands[1:]):
            continue
        register = i.operands[0].first
        readers = _readers(context, index, register)
        if not readers:
            continue
        local = BlockUses.around(context, index)
        near = (min(readers) > index and max(readers) < local.block.end
                and not any(k in context.labelled for k in range(index + 1, max(readers) + 1)))
        source = i.operands[1]
        span = range(index, max(readers) + 1) if near else range(0)
        taken = 0
        for k in span:
            taken |= busy.get(k, 0)
        if i.op == "v_mov_b32" and _is_inline(source):
            found[index] = _Value(index, register, readers, source.text, None)
            continue
        if (i.op == "v_mov_b32" and source.kind is OperandKind.REGISTER and source.first < VGPR0
                and near and local.keeps(index, max(readers), mask(source.first))
                and not taken & mask(source.first)):
            found[index] = _Value(index, register, readers, source.text, None)
            for k in span:
                busy[k] = busy.get(k, 0) | mask(source.first)
            continue
        form = SCALAR_FORMS[i.op]
        if form.sets_scc and context.live[index] & SCC_MASK:
            continue
        new = scalar(context.free.during(span) & ~taken if near else untouched)
        if new is None:
            continue
        for k in span:
            busy[k] = busy.get(k, 0) | mask(new)
        untouched &= ~mask(new)
        found[index] = _Value(index, register, readers, text(new), form)
    return _accepted(context, found)


def _may(context: RuleContext, index: int, i: Instruction) -> bool:
    if (i.op not in SCALAR_FORMS or i.encoding in ("dpp", "sdwa") or i.modifiers
            or index in context.indexed or index in context.cold or index in context.fences):
        return False
    to = i.operands[0]
    return (to.kind is OperandKind.REGISTER and VGPR0 <= to.first < AGPR0 and to.count == 1
            and not any(o.neg or o.abs or o.sext for o in i.operands))


def _is_uniform(operand: Operand, known: Mapping[int, str]) -> bool:
    if operand.kind is OperandKind.CONSTANT:
        return True
    return (operand.kind is OperandKind.REGISTER and operand.count == 1
            and (operand.first < SGPR_LIMIT or operand.first in known))


def _is_inline(operand: Operand) -> bool:
    return operand.kind is OperandKind.CONSTANT and not operand.text.startswith("0x")


def _readers(context: RuleContext, index: int, register: int) -> frozenset[int] | None:
    """All who read a result, when each reads nothing else in its place."""
    readers = BlockUses.around(context, index).readers(index, mask(register))
    if readers is None:
        if context.states[index] & _PARTIAL:
            return None
        readers = frozenset(users(context.program, index))
        if any(reaching_definitions(context.program, k, mask(register)) != (index,)
               for k in readers):
            return None
    elif context.states[index] & _PARTIAL and any(
            context.program.instructions[k].op in _READ_A_LANE for k in readers):
        return None  # which lane, when there is none?
    return readers


def _accepted(context: RuleContext, found: dict[int, _Value]) -> list[_Value]:
    """Those of the values all of whose readers take a scalar."""
    while True:
        kept = list(found.values())
        refused: set[int] = set()
        reading: dict[int, list[_Value]] = {}
        for value in kept:
            for reader in value.readers:
                reading.setdefault(reader, []).append(value)
        for reader, values in reading.items():
            if reader in found:
                continue
            if _with_scalars(context, reader, values) is None:
                refused.add(max(v.index for v in values))
        for value in kept:
            sources = context.program.instructions[value.index].operands[1:]
            known = {v.register for v in reading.get(value.index, ())}
            if any(o.kind is OperandKind.REGISTER and o.first >= VGPR0 and o.first not in known
                   for o in sources):
                refused.add(value.index)
        if not refused:
            return kept
        for index in refused:
            del found[index]


def _groups(context: RuleContext, values: Sequence[_Value]) -> list[list[_Value]]:
    """Values that feed one another, or one reader, and are worth it together.

    A copy that becomes another one gains nothing where it is executed once.
    """
    blocks = {number for loop in context.cfg.loops() for number in loop.blocks}
    instructions = context.program.instructions

    def gains(value: _Value) -> bool:
        return (value.form is None or instructions[value.index].op != "v_mov_b32"
                or context.cfg.block_of[value.index] in blocks
                or any(instructions[k].op in _READ_A_LANE for k in value.readers))

    groups: list[tuple[set[int], list[_Value]]] = []
    for value in values:
        touched, members = {value.index, *value.readers}, [value]
        rest = []
        for other, theirs in groups:
            if touched & other:
                touched |= other
                members = theirs + members
            else:
                rest.append((other, theirs))
        groups = [*rest, (touched, members)]
    return [sorted(members, key=lambda v: v.index) for _, members in groups
            if any(gains(v) for v in members)]


def _texts(context: RuleContext, values: Sequence[_Value]) -> dict[int, tuple[str, ...]] | None:
    """New instructions in the place of old ones."""
    out: dict[int, tuple[str, ...]] = {}
    own = {v.index for v in values}
    reading: dict[int, list[_Value]] = {}
    for value in values:
        for reader in value.readers:
            reading.setdefault(reader, []).append(value)
    for value in values:
        known = {v.register: v.stand_in for v in reading.get(value.index, ())}
        sources = [known.get(o.first, o.text) if o.kind is OperandKind.REGISTER else o.text
                   for o in context.program.instructions[value.index].operands[1:]]
        out[value.index] = () if value.form is None else value.form.texts(value.stand_in, sources)
    for reader, theirs in reading.items():
        if reader not in own:
            line = _with_scalars(context, reader, theirs)
            if line is None:
                return None
            out[reader] = (line,)
    return out


def _with_scalars(context: RuleContext, index: int, values: Sequence[_Value]) -> str | None:
    """An instruction that reads scalars in place of some vector registers, if there is one."""
    i = context.program.instructions[index]
    names = {v.register: v.stand_in for v in values}
    if index in context.indexed or index in context.fences:
        return None
    if i.op in _READ_A_LANE:
        return f"s_mov_b32 {i.operands[0].text}, {names[i.operands[1].first]}"
    if (i.unit not in (Unit.VALU, Unit.TRANS) or i.encoding in ("dpp", "sdwa")
            or not _WORDS.search(i.op) or _NARROW.search(i.op)
            or i.op.startswith(_ELSEWHERE) or i.modifier("op_sel") is not None):
        return None
    written = 1
    if i.op.startswith(_TWO_RESULTS):
        written = 2
    head, _, operands = i.text.partition(" ")
    parts = operands.split(", ")
    for n in range(written, len(i.operands)):
        operand = i.operands[n]
        if operand.kind is OperandKind.REGISTER and operand.count == 1 and operand.first in names:
            parts[n] = re.sub(r"(?<!\w)v\d+(?!\w)", names[operand.first], parts[n], count=1)
    if i.encoding == "e32" and len(parts) > 2:
        first, second = i.operands[written:written + 2]
        if second.kind is OperandKind.REGISTER and second.first in names:
            if i.op in _SWAPPED and first.first >= VGPR0 and first.first not in names:
                head = f"{_SWAPPED[i.op]}_e32"
                parts[written], parts[written + 1] = parts[written + 1], parts[written]
            else:
                head = f"{i.op}_e64"
    out = f"{head} {', '.join(parts)}"
    return out if _is_encodable(parse(out), names) else None


def _is_encodable(i: Instruction, gone: Mapping[int, str]) -> bool:
    """Whether the constant bus suffices for what an instruction reads, and nothing of ``gone`` is
    read any more."""
    if any(i.reads >> register & 1 for register in gone):
        return False
    buses = {o.text for o in i.operands if o.kind is OperandKind.REGISTER
             and o.first < EXEC_LO and mask(o.first, o.count) & i.reads}
    if i.reads & VCC_MASK:
        buses.add("vcc")
    literals = {o.text for o in i.operands if o.kind is OperandKind.CONSTANT
                and o.text.startswith("0x")}
    if literals and i.encoding != "e32":
        return False
    if i.reads & ~i.writes & EXEC_MASK and any("exec" in o.text for o in i.operands):
        return False
    return len(buses) + len(literals) <= 1
