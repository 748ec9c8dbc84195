"""Which instructions of a straight-line range must keep their order."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum

from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import mask, members

_LDS_WIDTHS = {"b8": 1, "u8": 1, "i8": 1, "b16": 2, "u16": 2, "i16": 2, "b32": 4, "b64": 8,
               "b96": 12, "b128": 16}
_MEMORY_WIDTHS = {"byte": 1, "ubyte": 1, "sbyte": 1, "short": 2, "ushort": 2, "sshort": 2,
                  "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}


class EdgeKind(StrEnum):
    """Why one instruction must stay behind another."""

    RAW = "raw"
    WAR = "war"
    WAW = "waw"
    # Memory accesses that may overlap, or that a barrier keeps apart.
    MEMORY = "memory"
    # A fence: nothing moves across it.
    FENCE = "fence"
    # A memory operation and the wait that holds until it is done.
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Edge:
    """``consumer`` must stay behind ``producer``; ``registers`` is the mask in question, if any."""

    producer: int
    consumer: int
    kind: EdgeKind
    registers: int = 0


class Dependences:
    """Predecessors of each instruction of ``start`` to ``stop`` (exclusive) within that range.

    Order is kept for registers (true, anti and output dependences, implicit registers included),
    for memory accesses that may overlap, around barriers (and waits in ``guards``) for memory
    accesses, and around ``fences`` (see :mod:`asmevo.isa.ordering`) for everything. Nothing is
    provable about addresses in general, since a store by one lane may hit what another lane loads;
    with ``assume_disjoint``, accesses through different buffer resources, and through the same
    address registers at disjoint offsets, are taken not to overlap. Waits are no part of it:
    whoever moves instructions has to place them anew.
    """

    def __init__(
        self, program: Program, start: int, stop: int, *, fences: Set[int], guards: Set[int],
        assume_disjoint: bool = False,
    ) -> None:
        self.start, self.stop = start, stop
        self._assume_disjoint = assume_disjoint
        self.predecessors: dict[int, set[int]] = {}
        self._registers: dict[tuple[int, int, EdgeKind], int] = {}
        instructions = program.instructions
        writer: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        accesses: list[int] = []
        barrier = fence = -1
        for index in range(start, stop):
            i = instructions[index]
            before: set[int] = set()
            for register in members(i.reads):
                if register in writer:
                    before.add(writer[register])
                    self._note(writer[register], index, EdgeKind.RAW, register)
            for register in members(i.writes):
                if register in writer:
                    before.add(writer[register])
                    self._note(writer[register], index, EdgeKind.WAW, register)
                for reader in readers.get(register, ()):
                    before.add(reader)
                    self._note(reader, index, EdgeKind.WAR, register)
            is_barrier = i.unit is Unit.BARRIER or index in guards
            if i.accesses_memory or is_barrier:
                ordered = {a for a in accesses
                           if is_barrier or self._ordered(instructions, a, index)}
                if barrier >= 0:
                    ordered.add(barrier)
                self._order(ordered, index, EdgeKind.MEMORY, before)
                accesses.append(index)
            if is_barrier:
                barrier = index
            if fence >= 0:
                self._order({fence}, index, EdgeKind.FENCE, before)
            if index in fences:
                self._order(set(range(max(fence, start), index)), index, EdgeKind.FENCE, before)
                fence = index
            before.discard(index)
            self.predecessors[index] = before
            for register in members(i.reads):
                readers.setdefault(register, []).append(index)
            for register in members(i.writes):
                writer[register] = index
                readers[register] = [index] if i.reads >> register & 1 else []

    def edges(self) -> tuple[Edge, ...]:
        """The dependences with their kinds, by consumer and producer."""
        ordered = sorted(self._registers, key=lambda key: (key[1], key[0], key[2]))
        return tuple(Edge(*key, self._registers[key]) for key in ordered)

    def _note(self, producer: int, consumer: int, kind: EdgeKind, register: int) -> None:
        if producer != consumer:
            key = (producer, consumer, kind)
            self._registers[key] = self._registers.get(key, 0) | 1 << register

    def _order(self, producers: set[int], consumer: int, kind: EdgeKind,
               before: set[int]) -> None:
        before |= producers
        for producer in producers - {consumer}:
            self._registers.setdefault((producer, consumer, kind), 0)

    def _ordered(self, instructions: tuple[Instruction, ...], a: int, b: int) -> bool:
        first, second = instructions[a], instructions[b]
        if first.is_load and second.is_load and not (first.is_atomic or second.is_atomic):
            # Loads to LDS write memory too.
            return bool(first.modifier("lds") or second.modifier("lds"))
        if {first.unit, second.unit} == {Unit.LDS, Unit.VMEM}:
            return bool(first.modifier("lds") or second.modifier("lds"))
        if Unit.SMEM in (first.unit, second.unit):
            # The scalar cache is not coherent with vector stores: no kernel may rely on an order.
            return first.is_atomic or second.is_atomic
        if first.is_atomic or second.is_atomic or Unit.FLAT in (first.unit, second.unit):
            return True
        return self._may_overlap(instructions, a, b)

    def _may_overlap(self, instructions: tuple[Instruction, ...], a: int, b: int) -> bool:
        if not self._assume_disjoint:
            return True
        first, second = instructions[a], instructions[b]
        if _resource(first) != _resource(second):
            return False
        if _base(first) != _base(second):
            return True
        registers = 0
        for start, count in _address(first):
            registers |= mask(start, count)
        if any(i.writes & registers for i in instructions[a:b]):
            return True
        one, other = _extent(first), _extent(second)
        if one is None or other is None:
            return True
        return one[0] < other[1] and other[0] < one[1]


def _data_operands(instruction: Instruction) -> int:
    """How many leading operands are data rather than address."""
    if instruction.unit is Unit.LDS:
        return 1 if instruction.is_load else 0
    if instruction.op.startswith("buffer_"):
        return 0 if instruction.modifier("lds") else 1
    return 1 if instruction.is_load else 0


def _address(instruction: Instruction) -> list[tuple[int, int]]:
    operands = instruction.operands[_data_operands(instruction):]
    if instruction.is_store and not instruction.op.startswith("buffer_"):
        # ds_write and global_store give the address first, then the data.
        operands = operands[:1] if instruction.unit is Unit.LDS else (operands[0], *operands[2:])
    return [(o.first, o.count) for o in operands if o.kind is OperandKind.REGISTER]


def _base(instruction: Instruction) -> tuple[object, ...]:
    modes = tuple(bool(instruction.modifier(m)) for m in ("offen", "idxen", "gds"))
    return (instruction.unit, *_address(instruction), *modes)


def _resource(instruction: Instruction) -> tuple[object, ...]:
    """The scalar registers that say which buffer an access goes to."""
    return (instruction.unit, *(a for a in _address(instruction) if a[0] < 128 and a[1] > 1))


def _extent(instruction: Instruction) -> tuple[int, int] | None:
    """Bytes accessed relative to the address operands; `None` when the form is not known."""
    offset = instruction.modifier("offset") or 0
    widths = _LDS_WIDTHS if instruction.unit is Unit.LDS else _MEMORY_WIDTHS
    width = widths.get(instruction.op.rsplit("_", 1)[-1])
    if width is None or "read2" in instruction.op or "write2" in instruction.op:
        return None
    if not isinstance(offset, int):
        return None
    return offset, offset + width
