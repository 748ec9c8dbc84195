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
        self._instructions = program.instructions
        self._fences, self._guards = fences, guards
        self.predecessors: dict[int, set[int]] = {}
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
            for register in members(i.writes):
                if register in writer:
                    before.add(writer[register])
                before.update(readers.get(register, ()))
            is_barrier = i.unit is Unit.BARRIER or index in guards
            if i.accesses_memory or is_barrier:
                if barrier >= 0:
                    before.add(barrier)
                before.update(
                    a for a in accesses
                    if is_barrier or self._ordered(instructions, a, index)
                )
                accesses.append(index)
            if is_barrier:
                barrier = index
            if fence >= 0:
                before.add(fence)
            if index in fences:
                before.update(range(max(fence, start), index))
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
        found: list[Edge] = []
        writer: dict[int, int] = {}
        readers: dict[int, set[int]] = {}
        for index in range(self.start, self.stop):
            i = self._instructions[index]
            registers: dict[tuple[int, EdgeKind], int] = {}

            def note(producer: int, kind: EdgeKind, register: int,
                     registers: dict[tuple[int, EdgeKind], int] = registers) -> None:
                registers[producer, kind] = registers.get((producer, kind), 0) | 1 << register

            for register in members(i.reads):
                if register in writer:
                    note(writer[register], EdgeKind.RAW, register)
            for register in members(i.writes):
                if register in writer:
                    note(writer[register], EdgeKind.WAW, register)
                for reader in readers.get(register, ()):
                    note(reader, EdgeKind.WAR, register)
            for producer in self.predecessors[index]:
                kind = self._order(producer, index)
                if kind is not None:
                    registers[producer, kind] = 0
            found += [Edge(producer, index, kind, registers[producer, kind])
                      for producer, kind in sorted(registers)]
            for register in members(i.reads):
                readers.setdefault(register, set()).add(index)
            for register in members(i.writes):
                writer[register] = index
                readers[register] = {index} if i.reads >> register & 1 else set()
        return tuple(found)

    def _order(self, producer: int, consumer: int) -> EdgeKind | None:
        """Why two instructions keep their order beside their registers."""
        if producer in self._fences or consumer in self._fences:
            return EdgeKind.FENCE
        first, second = self._instructions[producer], self._instructions[consumer]
        barriers = [k for k, i in ((producer, first), (consumer, second))
                    if i.unit is Unit.BARRIER or k in self._guards]
        touches = [first.accesses_memory or producer in barriers,
                   second.accesses_memory or consumer in barriers]
        if all(touches) and (barriers or self._ordered(self._instructions, producer, consumer)):
            return EdgeKind.MEMORY
        return None

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
        if address_resource(first) != address_resource(second):
            return False
        if address_base(first) != address_base(second):
            return True
        registers = 0
        for start, count in address_operands(first):
            registers |= mask(start, count)
        if any(i.writes & registers for i in instructions[a:b]):
            return True
        one, other = address_extent(first), address_extent(second)
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


def address_operands(instruction: Instruction) -> list[tuple[int, int]]:
    """First register and count of each operand that makes an access's address."""
    operands = instruction.operands[_data_operands(instruction):]
    if instruction.is_store and not instruction.op.startswith("buffer_"):
        # ds_write and global_store give the address first, then the data.
        operands = operands[:1] if instruction.unit is Unit.LDS else (operands[0], *operands[2:])
    return [(o.first, o.count) for o in operands if o.kind is OperandKind.REGISTER]


def address_base(instruction: Instruction) -> tuple[object, ...]:
    """What has to be equal for two accesses' offsets to be comparable."""
    modes = tuple(bool(instruction.modifier(m)) for m in ("offen", "idxen", "gds"))
    return (instruction.unit, *address_operands(instruction), *modes)


def address_resource(instruction: Instruction) -> tuple[object, ...]:
    """The scalar registers that say which buffer an access goes to."""
    scalars = (a for a in address_operands(instruction) if a[0] < 128 and a[1] > 1)
    return (instruction.unit, *scalars)


def address_extent(instruction: Instruction) -> tuple[int, int] | None:
    """Bytes accessed relative to the address operands; `None` when the form is not known."""
    offset = instruction.modifier("offset") or 0
    widths = _LDS_WIDTHS if instruction.unit is Unit.LDS else _MEMORY_WIDTHS
    width = widths.get(instruction.op.rsplit("_", 1)[-1])
    if width is None or "read2" in instruction.op or "write2" in instruction.op:
        return None
    if not isinstance(offset, int):
        return None
    return offset, offset + width
