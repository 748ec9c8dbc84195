"""Which values of the launch reach vector and memory instructions, compared with the original's.

Branches, masks and selections (`asmevo.gates.launch_uses`) are not the only way to treat a size
apart from the tested ones: a buffer's length can shrink with the number of rows, and a polynomial
can be zero at every tested number of them. So a value that depends on arguments or ids may be an
operand of a vector operation only where the original computes the same value, be it elsewhere; what
operations make that the algebra knows is looked at where it arrives. Addresses are the original's
(`asmevo.gates.address_uses`), as are the sizes and formats of buffers. What was read from memory or
LDS may come back as a scalar only where the original's vector operations take such scalars; and
what the launch decides may be stored, from where it could be loaded as data, only where the
original stores the same.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from asmevo.gates.address_uses import Access, address_uses, changed_addresses
from asmevo.gates.launch_uses import Counters, turned_sign
from asmevo.isa.addresses import is_carry_of_pointer
from asmevo.isa.cfg import Block
from asmevo.isa.effects import VECTOR_REGISTERS
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.registers import SGPR_LIMIT, VGPR0, mask, members
from asmevo.isa.turns import is_sign
from asmevo.isa.value_forms import rule_of
from asmevo.isa.value_graph import is_move, is_plain
from asmevo.isa.value_numbers import Form, Numbers, Taint
from asmevo.isa.values import KERNARG_POINTER, Values

_SCALARS = (1 << SGPR_LIMIT) - 1
_UNIFORM = Taint.KERNARG | Taint.WORKGROUP | Taint.HARDWARE
_LOADED = Taint.MEMORY | Taint.LDS
_LAUNCH = ("kernarg", "launch")

# The pointers in a buffer's address, and the numbers of its size and format; -1 for a number that
# the launch decides.
Buffer = tuple[frozenset[Form], int, int]


@functools.lru_cache(maxsize=1 << 14)
def _members(registers: int) -> tuple[int, ...]:
    return tuple(members(registers))


@dataclass(frozen=True)
class OperandUses:
    """Values of the launch that vector instructions compute with, and where they do first.

    ``plain`` are numbers that depend on the launch alone, ``addresses`` what pointers are combined
    with, ``loaded`` taints of scalars, ``buffers`` what descriptors say, ``accesses`` which
    addresses are accessed, ``stored`` by which unit values go that the launch decides, and their
    numbers, and ``mixed`` what is made of loaded data and such values. ``computed`` are the numbers
    of all that the algebra knows of: an argument that nothing uses is not among them. ``blocks``
    are the uses of an original's blocks, as far as they follow from these alone.
    """

    plain: dict[int, int]
    addresses: dict[frozenset[Form], int]
    loaded: dict[int, int]
    computed: frozenset[int]
    buffers: dict[Buffer, int]
    accesses: dict[Access, int]
    stored: dict[tuple[str, int], int]
    mixed: dict[int, int]
    blocks: dict[int, tuple[int, OperandUses]] = field(
        default_factory=dict, compare=False, repr=False)

    @staticmethod
    def of(values: Values, pointers: Container[int], *, original: bool,
           known: OperandUses | None = None) -> OperandUses:
        """Only of an ``original`` are the ``computed`` found.

        ``known`` are the uses of the original of which ``values`` has kept blocks: what is found in
        such a block follows from the numbers of its instructions, which are the same.
        """
        found = _none(_computed(values) if original else frozenset())
        counters = Counters(values)
        blocks = values.cfg.blocks
        for number in sorted(values.cfg.order, key=lambda n: blocks[n].start):
            start = blocks[number].start
            if known is not None and number in values.kept_blocks and number in known.blocks:
                first, part = known.blocks[number]
                found._add(part, start - first)
                continue
            asked = counters.asked
            part = _none(frozenset())
            part._look_through(values, blocks[number], pointers, counters)
            found._add(part, 0)
            # How often loops are run is told by other blocks.
            if original and counters.asked == asked:
                found.blocks[number] = start, part
        return found

    def _add(self, part: OperandUses, distance: int) -> None:
        """Take over a block's uses, which are so far behind where they were found."""
        for mine, others in zip(self._tables(), part._tables(), strict=True):
            for key, index in others.items():
                mine.setdefault(key, index + distance)

    def _tables(self) -> tuple[dict[Any, int], ...]:
        return (self.plain, self.addresses, self.loaded, self.buffers, self.accesses, self.stored,
                self.mixed)

    def _look_through(self, values: Values, block: Block, pointers: Container[int],
                      counters: Counters) -> None:
        self.accesses.update(address_uses(values, range(block.start, block.end)))
        facts = values.graph.effects
        seen = 0  # what was looked at, or made of such, in this block
        for index in range(block.start, block.end):
            i = values.program.instructions[index]
            followed = _is_followed(i)
            if followed and _mixes(values, index, i):
                for register in _members(i.writes & VECTOR_REGISTERS):
                    self.mixed.setdefault(values.exact_after(index, register), index)
            reads = _operands(values, index, i, pointers, self) & ~seen
            for register in _members(reads):
                self._look(values, index, register, pointers, counters)
            written = i.writes & (_SCALARS | VECTOR_REGISTERS)
            seen |= reads
            seen &= ~written
            if not followed:
                seen |= facts[index].kills & written & VECTOR_REGISTERS

    def _look(self, values: Values, index: int, register: int, pointers: Container[int],
              counters: Counters) -> None:
        if register >= VGPR0 and values.loaded_before(index, register):
            return
        numbers = values.numbers
        number = values.before(index, register)
        taint = numbers.taints[number]
        if taint & _LOADED:
            self.loaded.setdefault(taint & _LOADED, index)
        elif taint & _UNIFORM or (taint & Taint.PATH and counters.decide(index)):
            leaves = _address(number, numbers, pointers)
            if leaves is None:
                self.plain.setdefault(number, index)
            else:
                self.addresses.setdefault(leaves, index)


def _none(computed: frozenset[int]) -> OperandUses:
    return OperandUses({}, {}, {}, computed, {}, {}, {}, {})


def _computed(values: Values) -> frozenset[int]:
    found: set[int] = set()
    for index, i in enumerate(values.program.instructions):
        if not values.cfg.reachable(index):
            continue
        if i.unit is Unit.SALU:
            found.update(values.after(index, r) for r in _members(i.writes & _SCALARS))
        elif _is_followed(i):
            # Comparisons write lane masks to scalar registers.
            found.update(values.after(index, r)
                         for r in _members(i.writes & (_SCALARS | VECTOR_REGISTERS))
                         if not values.from_memory(index, r))
    return frozenset(found)


def _operands(values: Values, index: int, i: Instruction, pointers: Container[int],
              found: OperandUses) -> int:
    """The registers that an instruction computes with: what it makes is not followed further.

    Addresses are compared by themselves.
    """
    if i.unit is Unit.SALU or i.is_branch:
        return 0
    if not i.accesses_memory:
        if turned_sign(values, index, i) is not None:
            return 0
        return 0 if _is_followed(i) else i.reads & (_SCALARS | VECTOR_REGISTERS)
    numbers = values.numbers
    for register in _data(i):
        number = values.before(index, register)
        taint = numbers.taints[number]
        if taint & _UNIFORM and not taint & _LOADED:
            found.stored.setdefault((i.unit.value, number), index)
    for operand in i.operands:
        if operand.count == 4 and 0 <= operand.first < SGPR_LIMIT and "buffer_" in i.op:
            low, _, size, format_ = (values.before(index, operand.first + k) for k in range(4))
            bases = frozenset(form for form in numbers.leaves(low)
                              if form[0] == "kernarg" and form[1] in pointers)
            size, format_ = (-1 if numbers.taints[number] & ~Taint.PATH else number
                             for number in (size, format_))
            found.buffers.setdefault((bases, size, format_), index)
            return mask(operand.first + 2, 2)
    return 0


def _mixes(values: Values, index: int, i: Instruction) -> bool:
    """Whether an instruction makes something of loaded data and values of the launch."""
    if is_move(i):
        return False
    launch = loaded = False
    for register in _members(i.reads & (_SCALARS | VECTOR_REGISTERS)):
        if register >= VGPR0 and values.loaded_before(index, register):
            loaded = True
        else:
            launch = launch or bool(
                values.numbers.taints[values.before(index, register)] & _UNIFORM)
    return loaded and launch


def _is_followed(i: Instruction) -> bool:
    """Whether the algebra knows what a vector instruction makes."""
    return i.unit is Unit.VALU and _is_known(i.text)


@functools.lru_cache(maxsize=1 << 16)
def _is_known(text: str) -> bool:
    i = parse(text)
    return is_move(i) or is_sign(i) or (rule_of(i.op) is not None and is_plain(i))


def _address(number: int, numbers: Numbers, pointers: Container[int]) -> frozenset[Form] | None:
    """What a value with a pointer in it is made of; None for one without."""
    leaves = frozenset(form for form in numbers.leaves(number) if form[0] in _LAUNCH)
    for form in leaves:
        if (form[0] == "kernarg" and form[1] in pointers) or (
                form[0] == "launch" and str(form[1]).startswith(KERNARG_POINTER)):
            return leaves
    return None


def _data(i: Instruction) -> Iterator[int]:
    """The vector registers that an instruction stores."""
    if not i.is_store:
        return
    operands = i.operands[1:] if i.unit is Unit.LDS else (
        i.operands[:1] if i.op.startswith("buffer_") else i.operands[1:2])
    for operand in operands:
        if operand.first >= VGPR0:
            yield from range(operand.first, operand.first + operand.count)


def changed_operands(
    original: OperandUses, candidate: OperandUses, program: Program, numbers: Numbers
) -> Iterator[tuple[str, str]]:
    """``new-launch-operand`` or ``new-launch-address`` and a sentence for each use that the
    original does not have."""
    def where(index: int) -> str:
        return f"'{program.instructions[index].text}' at {program.offsets[index]:#x}"

    for number, index in candidate.plain.items():
        if number not in original.plain and number not in original.computed:
            yield "new-launch-operand", (
                f"{where(index)} takes a value of arguments or ids that the original does not "
                "compute")
    for leaves, index in candidate.addresses.items():
        if not any(leaves <= known for known in original.addresses):
            yield "new-launch-operand", (
                f"{where(index)} takes an address that depends on more than the original's")
    for taint, index in candidate.loaded.items():
        if not any(taint & known == taint for known in original.loaded):
            yield "new-launch-operand", (
                f"{where(index)} takes a scalar that was read from memory or LDS, which no such "
                "instruction of the original does")
    for buffer, index in candidate.buffers.items():
        if buffer not in original.buffers:
            yield "new-launch-operand", (
                f"{where(index)} takes a buffer whose size or format the original does not use")
    known = original.mixed.keys() | original.computed | numbers.closure(
        number for access in original.accesses for number in (access.low.base, access.high))
    for number, index in candidate.mixed.items():
        if number not in known and not all(
                n in known or is_carry_of_pointer(n, numbers)
                for n, _ in numbers.linear(number)[1]):
            yield "new-launch-operand", (
                f"{where(index)} combines loaded data with arguments or ids as the original does "
                "not")
    yield from changed_addresses(original.accesses, candidate.accesses, program, numbers)
    for store, index in candidate.stored.items():
        if store not in original.stored:
            yield "new-launch-operand", (
                f"{where(index)} stores a value of arguments or ids that the original does not "
                "store")
