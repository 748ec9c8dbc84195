"""Drops what only repeats, or copies, a value that another register of the block still has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmevo.isa.effects import State, has_side_effects
from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.parse import parse
from asmevo.isa.registers import AGPR0, EXEC_MASK, SGPR_LIMIT, VGPR0, mask
from asmevo.propose.block_uses import BlockUses
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.renaming import renamed
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

_UNITS = (Unit.SALU, Unit.VALU, Unit.TRANS)
# What they read is not all in their operands.
_NOT = ("s_getreg", "s_getpc", "s_get_waveid", "s_movrel", "v_movrel", "s_cmov")
# They read what lanes hold that are off.
_ACROSS = ("v_readlane", "v_readfirstlane", "v_permlane", "v_movrel", "ds_permute", "ds_bpermute",
           "ds_swizzle")
_PARTIAL = State.EXEC_LO_PARTIAL | State.EXEC_HI_PARTIAL
_COPIES = frozenset({"s_mov_b32", "s_mov_b64", "v_mov_b32", "v_mov_b64"})


class ReuseResults(Rule):
    """An operation that an earlier one of its block has done before (a conversion, an address), or
    a copy of a register, is dropped, and its uses read the other register.

    Nothing in between writes the operands, EXEC or the other register; all uses are in the block,
    in front of any change of EXEC, and can name the other register.
    """

    name = "reuse-results"
    direction = Direction.SIMPLIFICATION

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        found = list(_repeats(context))
        if not found:
            return
        apart = _apart(found)
        yield from self._dropped(context, apart)
        if len(found) > 1:
            for repeat in sorted(found, key=lambda r: (-context.weight((r.index,)), r.index)):
                yield from self._dropped(context, [repeat])

    def _dropped(self, context: RuleContext, repeats: Sequence[_Repeat]) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        rewrite.delete(r.index for r in repeats)
        for repeat in repeats:
            for reader, text in repeat.readers:
                rewrite.replace(reader, text)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            texts = "; ".join(dict.fromkeys(context.lines[r.index] for r in repeats))
            yield self.proposal(
                preview, f"{len(repeats)} result(s) are in another register already: {texts}")


@dataclass(frozen=True)
class _Repeat:
    """What need not be executed, and what those who read its result become."""

    index: int
    readers: tuple[tuple[int, str], ...]


def _repeats(context: RuleContext) -> Iterator[_Repeat]:
    instructions = context.program.instructions
    for block in context.cfg.blocks:
        if block.start in context.cold:
            continue
        uses = BlockUses(context, block)
        first: dict[tuple[str, str], int] = {}
        for index in range(block.start, block.end):
            i = instructions[index]
            if not _may(context, index):
                continue
            known = first.get(_work(i))
            if known is not None and _intact(context, uses, known, index):
                found = _instead(context, uses, index, known, instructions[known].operands[0])
                if found is not None:
                    yield found
                    continue
            else:
                first[_work(i)] = index
            if _is_copy(i):
                found = _instead(context, uses, index, index, i.operands[1])
                if found is not None:
                    yield found


def _may(context: RuleContext, index: int) -> bool:
    """Whether all that an instruction does is to write one register, or several in a row."""
    i = context.program.instructions[index]
    if (i.unit not in _UNITS or i.op.startswith(_NOT) or has_side_effects(i)
            or index in context.indexed or index in context.fences or not i.operands):
        return False
    to = i.operands[0]
    if not _is_numbered(to, to):
        return False
    written = mask(to.first, to.count)
    return (i.writes & written == written and not i.reads & written
            and not i.writes & ~written & (context.live[index] | EXEC_MASK))


def _is_copy(i: Instruction) -> bool:
    return (i.op in _COPIES and i.encoding not in ("dpp", "sdwa") and not i.modifiers
            and _is_numbered(i.operands[1], i.operands[0]))


def _work(i: Instruction) -> tuple[str, str]:
    """What an instruction does, whatever register it writes."""
    return i.text.partition(" ")[0], i.text.partition(", ")[2]


def _is_numbered(source: Operand, to: Operand) -> bool:
    """Whether an operand is plain registers of the file that another one is of."""
    if source.kind is not OperandKind.REGISTER or source.neg or source.abs or source.sext:
        return False
    low, high = (0, SGPR_LIMIT) if to.first < VGPR0 else (VGPR0, AGPR0)
    return all(low <= o.first and o.first + o.count <= high for o in (source, to))


def _intact(context: RuleContext, uses: BlockUses, first: int, index: int) -> bool:
    """Whether the operands of two equal operations are the same, for the same lanes."""
    i = context.program.instructions[first]
    return (i.operands[0].count == context.program.instructions[index].operands[0].count
            and uses.keeps(first, index, i.reads | EXEC_MASK)
            and not any(k in context.fences for k in range(first + 1, index)))


def _instead(context: RuleContext, uses: BlockUses, index: int, since: int, other: Operand
             ) -> _Repeat | None:
    """Those who read a result, reading another register, which has held it since an instruction."""
    instructions = context.program.instructions
    to = instructions[index].operands[0]
    gone, kept = mask(to.first, to.count), mask(other.first, other.count)
    if to.first == other.first:
        # Written again with what is there.
        return _Repeat(index, ()) if uses.keeps(since, index, kept) else None
    if gone & kept:
        return None
    readers = uses.readers(index, gone)
    if (not readers or not uses.keeps(since, max(readers), kept)
            or context.is_partly_written(index, kept)):
        return None
    if context.states[index] & _PARTIAL and any(_crosses(instructions[k]) for k in readers):
        return None
    registers = {to.first + n: other.first + n for n in range(to.count)}
    texts = []
    for reader in sorted(readers):
        text = None if reader in context.fences else _reading(instructions[reader], registers, gone)
        if text is None:
            return None
        texts.append((reader, text))
    return _Repeat(index, tuple(texts))


def _crosses(i: Instruction) -> bool:
    return i.unit is Unit.MFMA or i.encoding == "dpp" or i.op.startswith(_ACROSS)


def _reading(i: Instruction, registers: dict[int, int], gone: int) -> str | None:
    """An instruction that reads other registers, and still writes what it wrote."""
    # What is written as well keeps its name, as the first operand.
    head, comma, sources = i.text.partition(", ") if i.writes & gone else ("", "", i.text)
    # The mnemonic is not an operand.
    new = renamed(f"x {sources}" if comma else sources, registers)
    if new is None:
        return None
    text = head + comma + (new.partition(" ")[2] if comma else new)
    changed = parse(text)
    if changed.reads & gone or changed.writes != i.writes or any(map(_is_odd, changed.operands)):
        return None
    return text


def _is_odd(operand: Operand) -> bool:
    """Whether it is several registers from one on that such an operand cannot begin with."""
    if operand.kind is not OperandKind.REGISTER or operand.count == 1:
        return False
    if operand.first < VGPR0:
        return operand.first % min(operand.count, 4) != 0
    return operand.first % 2 != 0


def _apart(repeats: Sequence[_Repeat]) -> list[_Repeat]:
    """Those that do not touch what another one does."""
    out: list[_Repeat] = []
    touched: set[int] = set()
    for repeat in repeats:
        mine = {repeat.index, *(reader for reader, _ in repeat.readers)}
        if not mine & touched:
            out.append(repeat)
            touched |= mine
    return out
