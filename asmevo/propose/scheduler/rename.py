"""Gives values of a trace registers of their own, so that only true dependences order them.

Compilers use few registers again and again, and each reuse keeps two unrelated computations in
order. Values that are born and die within a trace get the register, among those free throughout it
and those that hold nothing but such values, that has been out of use longest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from asmevo.isa.dataflow import defined_before_use
from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.registers import AGPR0, EXEC_MASK, SGPR_LIMIT, VGPR0, mask, members
from asmevo.propose.free_registers import FreeRegisters, text
from asmevo.propose.rewrite import Rewrite
from asmevo.propose.rule import RuleContext
from asmevo.propose.scheduler.trace import Trace

_TOKEN = re.compile(r"(?<![\w.])([vs])(\d+|\[\d+:\d+\])(?![\w.])")
_LONG_AGO = -1
_WIDEST = 16
# What a launch may have defined: every scalar register, and the work-item ids.
_AT_ENTRY = mask(0, VGPR0) | mask(VGPR0, 3)


@dataclass(slots=True, eq=False)
class _Value:
    """Registers that instructions of a trace write, and the operands that name them.

    Values that one operand names together (the halves of an address) are one from then on:
    ``joined`` is what became of them.
    """

    first: int
    count: int
    born: int
    last: int
    fixed: bool = False
    # Instruction, operand, and the registers that it names.
    operands: list[tuple[int, int, int, int]] = field(default_factory=list)
    joined: _Value | None = None

    @property
    def now(self) -> _Value:
        value = self
        while value.joined is not None:
            value = value.joined
        return value

    def join(self, other: _Value) -> None:
        """Take over another value."""
        stop = max(self.first + self.count, other.first + other.count)
        self.first = min(self.first, other.first)
        self.count = stop - self.first
        self.born = min(self.born, other.born)
        self.last = max(self.last, other.last)
        self.fixed |= other.fixed
        self.operands += other.operands
        other.joined = self


def renamed(context: RuleContext, traces: Iterable[Trace], free: FreeRegisters) -> Rewrite | None:
    """The changes that rename values of traces, the most important first; ``None`` for none."""
    rewrite = context.rewrite()
    changed: dict[tuple[int, int], tuple[int, int]] = {}
    taken: set[int] = set()
    # Where an operand may hold nothing, all names stay: the gates compare such findings by them.
    kept = frozenset(v.consumer for v in defined_before_use(context.program, _AT_ENTRY))
    for trace in traces:
        found = _Renaming(context, trace, free, taken, kept).found()
        for first, count in found.values():
            # A trace within a region of another must not use what lives across it.
            taken.update(range(first, first + count))
        changed.update(found)
    by_index: dict[int, dict[int, tuple[int, int]]] = {}
    for (index, operand), run in changed.items():
        by_index.setdefault(index, {})[operand] = run
    for index, operands in by_index.items():
        line = _written(context.program.instructions[index], context.lines[index], operands)
        if line != context.lines[index]:
            rewrite.replace(index, line)
    return rewrite if rewrite else None


class _Renaming:
    """The values of one trace, and registers for them."""

    def __init__(self, context: RuleContext, trace: Trace, free: FreeRegisters,
                 taken: set[int], kept: frozenset[int]) -> None:
        self._context = context
        self._trace = trace
        self._free = free
        self._taken = taken
        self._kept = kept
        self._values: list[_Value] = []
        self._holds: dict[int, _Value | None] = {}
        self._outside: set[int] = set()  # registers that hold something else at some time

    def found(self) -> dict[tuple[int, int], tuple[int, int]]:
        """(instruction, operand) -> first register and count."""
        self._collect()
        values = [v for v in self._values if v.joined is None]
        for value in values:
            if value.fixed or value.count > _WIDEST:
                self._outside.update(range(value.first, value.first + value.count))
        movable = [v for v in values if not v.fixed and v.count <= _WIDEST]
        own = {r for v in movable for r in range(v.first, v.first + v.count)} - self._outside
        spare = set(members(self._free.during(self._trace.indices()))) - self._taken
        spare = {r for r in spare if r < SGPR_LIMIT or VGPR0 <= r < AGPR0}
        return _assigned(movable, own | spare)

    def _collect(self) -> None:
        context, place = self._context, 0
        instructions = context.program.instructions
        after = self._free.lanes.after
        for item in self._trace.items:
            masked = len(item.indices) > 1 and not item.pinned
            # What lanes do while others are off, and nobody reads afterwards, is their own.
            merged = after[item.indices[-1]] if masked else 0
            for index in item.kept:
                place += 1
                i = instructions[index]
                if item.pinned or index in self._kept:
                    self._opaque(i)
                else:
                    self._one(index, i, place, merged)
                if i.writes & EXEC_MASK and not masked:
                    # Other lanes from here on: what is held may be held by some of them only.
                    for register in tuple(self._holds):
                        self._hold_on(register)
                        self._outside.add(register)
                    self._holds.clear()
        last = tuple(self._trace.indices())[-1]
        for register in members(after[last]):
            self._hold_on(register)
            self._outside.add(register)

    def _hold_on(self, register: int) -> None:
        """The value in a register is used where its name cannot change."""
        value = self._holds.get(register)
        if value is not None:
            value.now.fixed = True
        else:
            self._outside.add(register)

    def _opaque(self, i: Instruction) -> None:
        for register in members(i.reads | i.writes):
            self._hold_on(register)
            self._outside.add(register)
        for register in members(i.writes):
            self._holds[register] = None

    def _one(self, index: int, i: Instruction, place: int, merged: int) -> None:
        tokens = _register_operands(i, self._context.lines[index])
        if tokens is None:
            self._opaque(i)
            return
        kills = self._context.effects[index].kills
        read = written = 0
        results = _results(i)
        for operand, (first, count) in tokens.items():
            run = mask(first, count)
            if operand in results:
                written |= run
                continue
            read |= run
            self._mention(index, operand, first, count, place)
        # What is read or written beside its operands.
        for register in members((i.reads & ~read | i.writes) & ~written):
            self._hold_on(register)
            self._outside.add(register)
            if i.writes >> register & 1:
                self._holds[register] = None
        for operand in results:
            if operand not in tokens:
                continue
            first, count = tokens[operand]
            run = mask(first, count)
            keeps = i.encoding in ("dpp", "sdwa") or "_d16" in i.op or (
                i.unit is Unit.MFMA and run & i.reads) or (first < VGPR0 and run & ~kills)
            if keeps or run & i.reads & ~read or run & merged:
                # Parts of the old value live on in the new one.
                self._mention(index, operand, first, count, place)
                continue
            value = _Value(first, count, place, place,
                           operands=[(index, operand, first, count)])
            self._values.append(value)
            for register in range(first, first + count):
                self._holds[register] = value

    def _mention(self, index: int, operand: int, first: int, count: int, place: int) -> None:
        """An operand that names a value which exists, or what is not one value."""
        held = [v.now if (v := self._holds.get(r)) is not None else None
                for r in range(first, first + count)]
        whole = held[0]
        if whole is None or any(v is None for v in held):
            for register in range(first, first + count):
                self._hold_on(register)
                self._outside.add(register)
            return
        for value in held[1:]:
            if value is not None and value.now is not whole:
                whole.join(value.now)
        whole.operands.append((index, operand, first, count))
        whole.last = place


def _results(i: Instruction) -> tuple[int, ...]:
    """The operands that an instruction writes."""
    if not i.operands or (i.is_store and not i.is_load):
        return ()
    found = []
    for number, operand in enumerate(i.operands[:2]):
        if operand.kind is OperandKind.REGISTER and operand.count and (
                mask(operand.first, operand.count) & ~i.writes == 0):
            if number and not _second_result(i):
                break
            found.append(number)
        elif number == 0 and i.unit is not Unit.VALU:
            break
    return tuple(found)


def _second_result(i: Instruction) -> bool:
    return i.op.startswith(("v_add_co", "v_sub_co", "v_subrev_co", "v_addc_co", "v_subb_co",
                            "v_subbrev_co", "v_mad_u64", "v_mad_i64", "v_div_scale"))


def _register_operands(i: Instruction, line: str) -> dict[int, tuple[int, int]] | None:
    """Numbers of the operands that are VGPRs or SGPRs, ``None`` when the text is not understood."""
    operands = {n: (o.first, o.count) for n, o in enumerate(i.operands)
                if o.kind is OperandKind.REGISTER and _TOKEN.fullmatch(o.text)}
    found = [m[0] for m in _TOKEN.finditer(line.partition(" ")[2])]
    if found != [i.operands[n].text for n in operands]:
        return None
    if any(o.kind in (OperandKind.TARGET, OperandKind.SYMBOL) for o in i.operands):
        return None
    return operands


def _written(i: Instruction, line: str, runs: dict[int, tuple[int, int]]) -> str:
    operands = _register_operands(i, line)
    assert operands is not None
    order = iter(operands)

    def replaced(match: re.Match[str]) -> str:
        number = next(order)
        return text(*runs[number]) if number in runs else match[0]

    head, space, rest = line.partition(" ")
    return head + space + _TOKEN.sub(replaced, rest)


def _assigned(values: Sequence[_Value], pool: set[int]) -> dict[tuple[int, int], tuple[int, int]]:
    """Registers of the pool for values in the order of their birth; nothing when some get none.

    A value that shares a register with something that cannot move may also stay there.
    """
    idle = dict.fromkeys(pool, _LONG_AGO)
    order = sorted(pool)
    out: dict[tuple[int, int], tuple[int, int]] = {}
    for value in sorted(values, key=lambda v: v.born):
        vector = value.first >= VGPR0
        align = 1 if value.count == 1 else 2 if vector or value.count == 2 else 4
        best, longest = None, value.born
        for first in order:
            if (first >= VGPR0) is not vector or (first - value.first) % align:
                continue
            since = _LONG_AGO
            for register in range(first, first + value.count):
                at = idle.get(register, value.born)
                since = max(since, at)
                if since >= longest:
                    break
            if since < longest:
                best, longest = first, since
        if best is None:
            if any(r in pool for r in range(value.first, value.first + value.count)):
                return {}
            # Nothing else is ever put where it is.
            continue
        for register in range(best, best + value.count):
            idle[register] = max(value.last, value.born)
        for index, operand, first, count in value.operands:
            out[index, operand] = (best + first - value.first, count)
    return out
