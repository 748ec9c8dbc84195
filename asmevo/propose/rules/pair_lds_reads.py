"""Fetches two LDS dwords with one instruction."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.dataflow import ENTRY, reaching_definitions, users
from asmevo.isa.instruction import Instruction, OperandKind
from asmevo.isa.registers import mask, name
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

_LIMIT = 256
_DWORD = 4

# Address register -> the instruction behind which to advance it, and by how many bytes.
_Advance = dict[int, tuple[int, int]]


class PairLdsReads(Rule):
    """Two reads through one address register fill neighbouring registers.

    ``ds_read2_b32`` does both in one issue slot; its two 8-bit offsets count dwords. Where offsets
    are too large for that and the address register serves these reads only, it is advanced by the
    smallest of them right behind its definition.
    """

    name = "pair-lds-reads"
    direction = Direction.MEMORY_ACCESS

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        pairs = _pairs(context)
        if not pairs:
            return
        advanced = _advanced(context, pairs)
        plans: list[tuple[list[tuple[int, int]], _Advance]] = []
        if advanced:
            plans.append((pairs, advanced))
        near = [p for p in pairs if _fits(context, p, 0)]
        if near:
            plans.append((near, {}))
        for chosen, advance in plans:
            yield from self._paired(context, chosen, advance)
        if len(near) > 1:
            yield from context.by_weight(
                (pair, proposal) for pair in near
                for proposal in self._paired(context, [pair], {}))

    def _paired(
        self, context: RuleContext, pairs: list[tuple[int, int]], advance: _Advance,
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        instructions = context.program.instructions
        for register, (definition, distance) in advance.items():
            rewrite.replace(
                definition, context.lines[definition],
                f"v_add_u32_e32 {name(register)}, {distance:#x}, {name(register)}")
        moved = {register: distance for register, (_, distance) in advance.items()}
        paired: set[int] = set()
        for first, second in pairs:
            low, high = (instructions[i] for i in (first, second))
            distance = moved.get(low.operands[1].first, 0)
            if not _fits(context, (first, second), distance):
                continue
            a, b = ((_offset(i) - distance) // _DWORD for i in (low, high))
            start = name(low.operands[0].first)[1:]
            offsets = (f" offset0:{a}" if a else "") + (f" offset1:{b}" if b else "")
            rewrite.replace(
                first,
                f"ds_read2_b32 v[{start}:{int(start) + 1}], {low.operands[1].text}{offsets}")
            rewrite.delete((second,))
            paired.update((first, second))
        for index, i in enumerate(instructions):
            if index not in paired and _is_read(i) and i.operands[1].first in moved:
                rewrite.replace(index, _read_text(i, _offset(i) - moved[i.operands[1].first]))
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            what = "; the address is advanced once instead" if advance else ""
            yield self.proposal(
                preview, f"{len(paired) // 2} pair(s) of LDS reads become one instruction each"
                f"{what}")


def _is_read(instruction: Instruction) -> bool:
    return instruction.op == "ds_read_b32" and instruction.modifier("gds") is None


def _offset(instruction: Instruction) -> int:
    offset = instruction.modifier("offset")
    return offset if isinstance(offset, int) else 0


def _read_text(instruction: Instruction, offset: int) -> str:
    target, address = instruction.operands
    return f"ds_read_b32 {target.text}, {address.text}" + (f" offset:{offset}" if offset else "")


def _pairs(context: RuleContext) -> list[tuple[int, int]]:
    """Neighbouring reads (in the instruction stream) of an even register and the next one."""
    out: list[tuple[int, int]] = []
    used: set[int] = set()
    instructions = context.program.instructions
    for index in range(len(instructions) - 1):
        first, second = instructions[index], instructions[index + 1]
        if (index in used or index in context.cold or index + 1 in context.labelled
                or index in context.indexed
                or not (_is_read(first) and _is_read(second))):
            continue
        target, address = first.operands
        if (target.first % 2 == 0 and second.operands[0].first == target.first + 1
                and second.operands[1].first == address.first != target.first
                and address.kind is OperandKind.REGISTER):
            out.append((index, index + 1))
            used.update((index, index + 1))
    return out


def _fits(context: RuleContext, pair: tuple[int, int], distance: int) -> bool:
    offsets = [_offset(context.program.instructions[i]) - distance for i in pair]
    return all(o % _DWORD == 0 and 0 <= o < _LIMIT * _DWORD for o in offsets)


def _advanced(context: RuleContext, pairs: list[tuple[int, int]]) -> _Advance:
    program = context.program
    out: _Advance = {}
    for register in sorted({program.instructions[a].operands[1].first for a, _ in pairs}):
        reads = [
            index for index, i in enumerate(program.instructions)
            if _is_read(i) and i.operands[1].first == register
        ]
        offsets = [_offset(program.instructions[i]) for i in reads]
        definitions = {
            d for i in reads for d in reaching_definitions(program, i, mask(register))}
        if min(offsets) == 0 or max(offsets) < _LIMIT * _DWORD or len(definitions) != 1:
            continue
        definition = definitions.pop()
        if definition != ENTRY and set(users(program, definition)) <= set(reads):
            out[register] = definition, min(offsets)
    return out
