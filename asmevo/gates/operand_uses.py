"""Which values of the launch reach vector and memory instructions, compared with the original's.

Branches, masks and selections (`asmevo.gates.launch_uses`) are not the only way to treat a size
apart from the tested ones: a buffer's length can shrink with the number of rows, and a polynomial
can be zero at every tested number of them. So a scalar that depends on arguments or ids may be an
operand of such an instruction only where the original computes the same value, be it elsewhere. The
address of a buffer may depend on what the original makes it depend on, and is one of the original's
up to a constant where no loop moves it; its size and format are the original's. What was read from
memory or LDS may come back as a scalar only where the original's instructions of that kind take
such scalars; and what the launch decides may be stored, from where it could be loaded as data, only
where the original stores the same.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from asmevo.gates.launch_uses import Counters
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import SGPR_LIMIT, VGPR0, members
from asmevo.isa.value_numbers import Form, Numbers, Taint
from asmevo.isa.values import KERNARG_POINTER, Values

_SCALARS = (1 << SGPR_LIMIT) - 1
_UNIFORM = Taint.KERNARG | Taint.WORKGROUP | Taint.HARDWARE
_LOADED = Taint.MEMORY | Taint.LDS
_LAUNCH = ("kernarg", "launch")
_KINDS = ("scalar memory", "vector memory", "vector arithmetic")

# A kind of instruction and what its address is made of.
Address = tuple[str, frozenset[Form]]
# The pointers in a buffer's address, and the numbers of its size and format; -1 for a number that
# the launch decides.
Buffer = tuple[frozenset[Form], int, int]
# The same pointers, and the arguments and ids that the whole address of an access depends on.
Place = tuple[frozenset[Form], frozenset[Form]]


@dataclass(frozen=True)
class OperandUses:
    """Scalars that other than scalar instructions read, by what they are; where they do first.

    ``plain`` are numbers that depend on the launch alone, ``addresses`` what pointers are combined
    with, ``loaded`` kinds of instructions and taints, ``buffers`` what descriptors say, ``places``
    and ``sums`` what buffers' addresses are made of, ``stored`` by which unit values go that the
    launch decides, and their numbers. ``computed`` are the numbers of all scalars that scalar
    arithmetic makes: an argument that nothing uses is not among them.
    """

    plain: dict[int, int]
    addresses: dict[Address, int]
    loaded: dict[tuple[str, Taint], int]
    computed: frozenset[int]
    buffers: dict[Buffer, int]
    places: dict[Place, int]
    sums: dict[int, int]
    stored: dict[tuple[str, int], int]

    @staticmethod
    def of(values: Values, pointers: Container[int], *, original: bool) -> OperandUses:
        """Only of an ``original`` are the ``computed`` found."""
        numbers = values.numbers
        plain: dict[int, int] = {}
        addresses: dict[Address, int] = {}
        loaded: dict[tuple[str, Taint], int] = {}
        computed: set[int] = set()
        buffers: dict[Buffer, int] = {}
        places: dict[Place, int] = {}
        sums: dict[int, int] = {}
        stored: dict[tuple[str, int], int] = {}
        counters = Counters(values)
        seen = dict.fromkeys(_KINDS, 0)  # what was looked at since it was written, in this block
        block = -1
        for index, i in enumerate(values.program.instructions):
            if not values.cfg.reachable(index):
                continue
            if values.cfg.block_of[index] != block:
                block = values.cfg.block_of[index]
                seen = dict.fromkeys(_KINDS, 0)
            if original and i.unit is Unit.SALU:
                computed.update(values.after(index, r) for r in members(i.writes & _SCALARS))
            kind = _kind(i)
            read = 0 if kind is None else i.reads & _SCALARS & ~seen[kind]
            if kind is not None:
                seen[kind] |= read
            if written := i.writes & _SCALARS:
                seen = {other: known & ~written for other, known in seen.items()}
            if kind is None:
                continue
            buffer = _buffer(values, index, i, pointers)
            if buffer is not None:
                buffers.setdefault(buffer, index)
                place, total = _place(values, index, i)
                places.setdefault((buffer[0], place), index)
                if total is not None:
                    sums.setdefault(total, index)
            for register in _data(i):
                number = values.before(index, register)
                taint = numbers.taints[number]
                if taint & _UNIFORM and not taint & _LOADED:
                    stored.setdefault((i.unit.value, number), index)
            for register in members(read):
                number = values.before(index, register)
                taint = numbers.taints[number]
                if taint & _LOADED:
                    loaded.setdefault((kind, taint & _LOADED), index)
                elif taint & _UNIFORM or (taint & Taint.PATH and counters.decide(index)):
                    found = _address(number, numbers, pointers)
                    if found is None:
                        plain.setdefault(number, index)
                    else:
                        addresses.setdefault((kind, found), index)
        return OperandUses(plain, addresses, loaded, frozenset(computed), buffers, places, sums,
                           stored)


def _kind(i: Instruction) -> str | None:
    if i.unit is Unit.SMEM:
        return _KINDS[0]
    if i.accesses_memory:
        return _KINDS[1]
    return None if i.unit is Unit.SALU or i.is_branch else _KINDS[2]


def _address(number: int, numbers: Numbers, pointers: Container[int]) -> frozenset[Form] | None:
    """What a value with a pointer in it is made of; None for one without."""
    leaves = frozenset(form for form in numbers.leaves(number) if form[0] in _LAUNCH)
    for form in leaves:
        if (form[0] == "kernarg" and form[1] in pointers) or (
                form[0] == "launch" and str(form[1]).startswith(KERNARG_POINTER)):
            return leaves
    return None


def _buffer(
    values: Values, index: int, i: Instruction, pointers: Container[int]
) -> Buffer | None:
    if not i.op.startswith("buffer_"):
        return None
    numbers = values.numbers
    for operand in i.operands:
        if operand.count == 4 and 0 <= operand.first < SGPR_LIMIT:
            low, _, size, format_ = (values.before(index, operand.first + k) for k in range(4))
            bases = frozenset(form for form in numbers.leaves(low)
                              if form[0] == "kernarg" and form[1] in pointers)
            size, format_ = (-1 if numbers.taints[number] & ~Taint.PATH else number
                             for number in (size, format_))
            return bases, size, format_
    return None


def _place(values: Values, index: int, i: Instruction) -> tuple[frozenset[Form], int | None]:
    """What the base and the offsets of a buffer's access are made of, and their sum up to a
    constant if no loop and no loaded data are part of it."""
    numbers = values.numbers
    total = numbers.zero
    # The first operand is data, except where these go to LDS.
    for operand in i.operands if i.modifier("lds") else i.operands[1:]:
        if operand.count > 0:
            total = numbers.add(total, values.before(index, operand.first))
    found = frozenset(numbers.leaves(total))
    leaves = frozenset(form for form in found if form[0] in _LAUNCH)
    if numbers.taints[total] & _LOADED or ("loop",) in found:
        return leaves, None
    return leaves, numbers.without_constant(total)


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
    original: OperandUses, candidate: OperandUses, program: Program
) -> Iterator[tuple[str, str]]:
    """``new-launch-operand`` and a sentence for each use that the original does not have."""
    def where(index: int) -> str:
        return f"'{program.instructions[index].text}' at {program.offsets[index]:#x}"

    for number, index in candidate.plain.items():
        if number not in original.plain and number not in original.computed:
            yield "new-launch-operand", (
                f"{where(index)} takes a value of arguments or ids that the original does not "
                "compute")
    for (kind, leaves), index in candidate.addresses.items():
        if not any(kind == other and leaves <= known for other, known in original.addresses):
            yield "new-launch-operand", (
                f"{where(index)} takes an address that depends on more than the original's")
    for (kind, taint), index in candidate.loaded.items():
        if not any(kind == other and taint in known for other, known in original.loaded):
            yield "new-launch-operand", (
                f"{where(index)} takes a scalar that was read from memory or LDS, which no such "
                "instruction of the original does")
    for buffer, index in candidate.buffers.items():
        if buffer not in original.buffers:
            yield "new-launch-operand", (
                f"{where(index)} takes a buffer whose size or format the original does not use")
    for (bases, leaves), index in candidate.places.items():
        known = [other for pointers, other in original.places if pointers == bases]
        if known and not (frozenset.intersection(*known) <= leaves
                          and any(leaves <= other for other in known)):
            yield "new-launch-operand", (
                f"{where(index)} takes an address that depends on other arguments or ids than the "
                "original's")
    for total, index in candidate.sums.items():
        if total not in original.sums:
            yield "new-launch-operand", (
                f"{where(index)} takes an address that the original does not compute")
    for store, index in candidate.stored.items():
        if store not in original.stored:
            yield "new-launch-operand", (
                f"{where(index)} stores a value of arguments or ids that the original does not "
                "store")
