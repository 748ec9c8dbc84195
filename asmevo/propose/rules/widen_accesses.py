"""Neighbouring accesses of memory as one wider access."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.registers import EXEC_MASK, VGPR0, mask, members
from asmevo.propose.free_registers import scalar, text, vector
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.renaming import renamed
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

_DWORD = 4
# Dwords that one access of each family may have (CDNA3 ISA, "Scalar Memory", "Vector Memory").
_WIDTHS = {
    "s_load_dword": (1, 2, 4, 8, 16), "global_load_dword": (1, 2, 3, 4),
    "buffer_load_dword": (1, 2, 3, 4), "global_store_dword": (1, 2, 3, 4),
    "buffer_store_dword": (1, 2, 3, 4),
}
# Accesses that others may wait for, or whose address is not a base and an offset.
_APART = ("sc0", "sc1", "lds", "idxen")
# Instructions between two accesses, at most.
_SPAN = 24


@dataclass(frozen=True)
class _Access:
    """One access: its family, which operand is data, everything but its offset, and that."""

    index: int
    family: str
    data: int
    key: tuple[object, ...]
    offset: int

    @staticmethod
    def of(index: int, i: Instruction) -> _Access | None:
        family = i.op.split("_dword")[0] + "_dword"
        if family not in _WIDTHS or any(i.modifier(m) for m in _APART):
            return None
        data = 1 if family == "global_store_dword" else 0
        rest = [o.text for n, o in enumerate(i.operands) if n != data]
        if family == "s_load_dword":
            offset = i.operands[2]
            if offset.kind is not OperandKind.CONSTANT or i.modifiers:
                return None
            return _Access(index, family, data, (family, rest[0]), offset.value)
        given = i.modifier("offset")
        flags = tuple(m for m in i.modifiers if m[0] != "offset")
        return _Access(index, family, data, (family, *rest, flags),
                       given if isinstance(given, int) else 0)


class WidenAccesses(Rule):
    """Loads, or stores, of neighbouring dwords through one address become one access.

    Dword alignment of the address is all that these need, as before; register tuples have to be
    aligned. Where the registers of loads are not neighbours, what is loaded gets others, as far as
    it stays within the block. The load moves up to the first one, the store down to the last.
    """

    name = "widen-accesses"
    direction = Direction.MEMORY_ACCESS

    def __init__(self, most: int = 24) -> None:
        self._most = most

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        pairs = list(_pairs(context))
        if not pairs:
            return
        yield from self._widened(context, None)
        if len(pairs) > 1:
            ranked = sorted(pairs, key=lambda p: (-context.weight((p[0].index,)), p[0].index))
            for pair in ranked[:self._most]:
                yield from self._widened(context, pair)

    def _widened(
        self, context: RuleContext, only: tuple[_Access, _Access] | None,
    ) -> Iterator[Proposal]:
        """Of one pair, or of all: then what has become wider may go on growing."""
        preview, current, count = context.preview, context, 0
        while count < (1 if only else self._most):
            pair = only or next(_pairs(current), None)
            changes = None if pair is None else _merged(current, *pair)
            if changes is None:
                break
            rewrite = current.rewrite()
            for index, line in changes.items():
                if line is None:
                    rewrite.delete((index,))
                elif line != current.lines[index]:
                    rewrite.replace(index, line)
            edits = rewrite.edits(self.name)
            preview, current, count = preview.apply(edits), current.after(edits), count + 1
        preview = repair(context, preview)
        if count and is_clean(context, preview):
            yield self.proposal(
                preview, f"{count} access(es) join the one of the dwords next to theirs")


def _pairs(context: RuleContext) -> Iterator[tuple[_Access, _Access]]:
    instructions = context.program.instructions
    used: set[int] = set()
    for index, i in enumerate(instructions):
        first = _Access.of(index, i)
        if first is None or index in used or index in context.cold or index in context.indexed:
            continue
        for later in range(index + 1, min(index + _SPAN, len(instructions))):
            if later in context.labelled or instructions[later].is_branch:
                break
            second = _Access.of(later, instructions[later])
            if (second is not None and second.key == first.key and later not in used
                    and abs(second.offset - first.offset) == _DWORD * _count(
                        context, min(first, second, key=lambda a: a.offset))
                    and _merged(context, first, second) is not None):
                used.update((index, later))
                yield first, second
                break


def _count(context: RuleContext, access: _Access) -> int:
    return context.program.instructions[access.index].operands[access.data].count


def _merged(
    context: RuleContext, first: _Access, second: _Access,
) -> dict[int, str | None] | None:
    """New texts of instructions, none for what goes; or nothing when the two cannot be one."""
    low, high = sorted((first, second), key=lambda a: a.offset)
    width = _count(context, low) + _count(context, high)
    if width not in _WIDTHS[first.family]:
        return None
    a, b = context.program.instructions[first.index], context.program.instructions[second.index]
    between = range(first.index + 1, second.index)
    if a.writes & b.reads:
        return None
    if any(_separates(context, k, a, b) for k in between):
        return None
    registers = [context.program.instructions[x.index].operands[x.data].first
                 for x in (low, high)]
    runs = [(r, _count(context, x)) for r, x in zip(registers, (low, high), strict=True)]
    start = registers[0]
    joined = registers[1] == start + runs[0][1] and start % _alignment(start, width) == 0
    changes: dict[int, str | None] = {}
    if not joined:
        if a.is_store:
            return None
        moved = _elsewhere(context, first.index, runs, width)
        if moved is None:
            return None
        start, changes = moved
    keep, drop = (second, first) if a.is_store else (first, second)
    line = _text(context, keep, low.offset, start, width)
    return {**changes, keep.index: line, drop.index: None}


def _separates(context: RuleContext, index: int, a: Instruction, b: Instruction) -> bool:
    """Whether an instruction between two accesses keeps them from being one."""
    i = context.program.instructions[index]
    if (index in context.fences or index in context.guards or index in context.indexed
            or i.writes & EXEC_MASK or i.is_atomic or i.unit is Unit.BARRIER):
        return True
    if i.accesses_memory and i.unit is not Unit.LDS and (i.is_store or a.is_store):
        return True
    if a.is_store:
        return bool(i.writes & a.reads)
    return bool(i.writes & (a.reads | b.reads | b.writes) or i.reads & b.writes)


def _alignment(register: int, width: int) -> int:
    """Vector tuples start at even registers (CDNA3 ISA, "VGPR alignment"), scalar ones at fours."""
    return 2 if register >= VGPR0 or width == 2 else 4


def _elsewhere(
    context: RuleContext, first: int, runs: list[tuple[int, int]], width: int,
) -> tuple[int, dict[int, str | None]] | None:
    """A free tuple for what two loads bring, and the texts of those who use it from there."""
    block = context.cfg.blocks[context.cfg.block_of[first]]
    old = [r + k for r, count in runs for k in range(count)]
    registers = mask(runs[0][0], runs[0][1]) | mask(runs[1][0], runs[1][1])
    facts = context.effects
    ends = [k for k in range(first, block.end)
            if (facts[k].reads | facts[k].writes) & registers]
    last = ends[-1]
    # Lanes that are on for a part of the uses only may have the old value of the old register.
    if old[0] >= VGPR0 and any(facts[k].writes & EXEC_MASK for k in range(first, last + 1)):
        return None
    after = context.lanes.after[last] if last + 1 >= block.end else context.lanes.before[last + 1]
    if after & registers or context.lanes.before[first] & registers:
        return None
    if any(k in context.indexed for k in ends):
        return None
    free = context.free.during(range(first, last + 1))
    start = vector(free, width, 2) if old[0] >= VGPR0 else scalar(free, width)
    if start is None:
        return None
    mapping = {r: start + n for n, r in enumerate(old)}
    changes: dict[int, str | None] = {}
    for k in ends:
        i = context.program.instructions[k]
        named = {r for o in i.operands if o.kind is OperandKind.REGISTER
                 for r in range(o.first, o.first + o.count)}
        line = renamed(context.lines[k], mapping)
        if line is None or set(members((i.reads | i.writes) & registers)) - named:
            return None
        changes[k] = line
    return start, changes


def _text(context: RuleContext, access: _Access, offset: int, start: int, width: int) -> str:
    i = context.program.instructions[access.index]
    suffix = "" if width == 1 else f"x{width}"
    operands = [text(start, width) if n == access.data else o.text
                for n, o in enumerate(i.operands)]
    if access.family == "s_load_dword":
        operands[2] = f"{offset:#x}"
        return f"{access.family}{suffix} {', '.join(operands)}"
    # What stands behind the operands keeps its words, such as ``offen`` and ``nt``.
    tail = context.lines[access.index].split(", ")[-1].split()[1:]
    words = [w for w in tail if not w.startswith("offset:")]
    if offset:
        at = next((n for n, w in enumerate(words) if w not in ("offen", "idxen")), len(words))
        words.insert(at, f"offset:{offset}")
    return " ".join((f"{access.family}{suffix} {', '.join(operands)}", *words))
