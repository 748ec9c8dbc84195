"""The addresses of memory accesses, and what is left of them without constants and loops.

An address is told apart by what the launch and loaded data make of it, not by constants: those are
the same on every launch, so that running a kernel shows whether they are right. The same holds for
how far a loop moves an address by constant steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.registers import SGPR_LIMIT
from asmevo.isa.value_numbers import Form, Numbers

# The number of a word of an operand.
Word = Callable[[int, int], int]

# Copies of an unrolled loop or turns before it: more than these are no multiples of a step.
_MOST_TURNS = 64
_SIGN, _WHOLE = 0x80000000, 1 << 32


@dataclass(frozen=True, slots=True)
class Address:
    """Where an access starts: numbers of the words of a sum that may have been made for it.

    ``space`` is ``memory``, ``buffer`` (with the upper word and stride of its descriptor in
    ``high``), ``lds`` or ``scratch``.
    """

    space: str
    low: int
    high: int


def address_of(i: Instruction, word: Word, numbers: Numbers) -> Address | None:
    """The address of an access; ``None`` where it is not in its operands.

    ``word`` gives the number of the ``k``-th register of an operand.
    """
    if i.unit is Unit.LDS:
        return _lds(i, word, numbers)
    if i.unit is Unit.SMEM:
        return _scalar(i, word, numbers)
    if i.op.startswith(("buffer_", "tbuffer_")):
        return _buffer(i, word, numbers)
    return _flat(i, word, numbers)


def address_pair(i: Instruction) -> int | None:
    """The first of the two registers that hold the 64-bit base of a memory access."""
    if i.unit is Unit.SMEM:
        return _scalar_pair(i.operands[1]) if len(i.operands) >= 3 else None
    if i.unit is Unit.LDS or i.op.startswith("scratch"):
        return None
    if i.op.startswith(("buffer_", "tbuffer_")):
        for at, operand in enumerate(i.operands):
            if (operand.count == 4 and (at or i.modifier("lds"))
                    and (pair := _scalar_pair(operand)) is not None):
                return pair
        return None
    at = 1 if _returns(i) else 0
    if len(i.operands) <= at:
        return None
    if (pair := _scalar_pair(i.operands[-1])) is not None and len(i.operands) - 1 > at:
        return pair
    vector = i.operands[at]
    return vector.first if vector.kind is OperandKind.REGISTER and vector.count == 2 else None


def _scalar_pair(operand: Operand) -> int | None:
    scalar = operand.kind is OperandKind.REGISTER and 0 <= operand.first < SGPR_LIMIT
    return operand.first if scalar and operand.count in (2, 4) else None


def _offset(i: Instruction, numbers: Numbers) -> int:
    offset = i.modifier("offset")
    return numbers.constant(offset) if isinstance(offset, int) else numbers.zero


def _lds(i: Instruction, word: Word, numbers: Numbers) -> Address | None:
    at = 1 if i.is_load or "_rtn" in i.op else 0
    if len(i.operands) <= at or i.operands[at].count != 1 or "gws" in i.op:
        return None
    low = numbers.add(word(at, 0), _offset(i, numbers))
    return Address("lds", low, numbers.zero)


def _scalar(i: Instruction, word: Word, numbers: Numbers) -> Address | None:
    if len(i.operands) < 3 or i.operands[1].count not in (2, 4):
        return None
    distance = numbers.zero if i.operands[2].kind is OperandKind.OFF else word(2, 0)
    base = word(1, 0)
    high = word(1, 1)
    low = numbers.add(numbers.add(base, distance), _offset(i, numbers))
    if i.operands[1].count == 4:
        return Address("buffer", low, high)
    return Address("memory", low, numbers.add_carry(high, base, distance))


def _buffer(i: Instruction, word: Word, numbers: Numbers) -> Address | None:
    for at, operand in enumerate(i.operands):
        if operand.count == 4 and 0 <= operand.first < SGPR_LIMIT and (at or i.modifier("lds")):
            break
    else:
        return None
    low = numbers.add(word(at, 0), _offset(i, numbers))
    if at + 1 < len(i.operands):
        low = numbers.add(low, word(at + 1, 0))
    if at and i.operands[at - 1].kind is OperandKind.REGISTER and (at > 1 or i.modifier("lds")):
        if i.modifier("idxen"):
            index = word(at - 1, 0)
            low = numbers.add(low, numbers.atom(("index", index), (index,)))
        if i.modifier("offen"):
            low = numbers.add(low, word(at - 1, i.operands[at - 1].count - 1))
    return Address("buffer", low, word(at, 1))


def _returns(i: Instruction) -> bool:
    return (i.is_load and "_lds_" not in i.op) or (
        i.is_atomic and bool(i.modifier("sc0") or i.modifier("glc")))


def _flat(i: Instruction, word: Word, numbers: Numbers) -> Address | None:
    at = 1 if _returns(i) else 0
    if len(i.operands) <= at:
        return None
    space = "scratch" if i.op.startswith("scratch") else "memory"
    last = len(i.operands) - 1
    vector, base = i.operands[at], i.operands[last]
    extra = _offset(i, numbers)
    if last > at and base.kind is OperandKind.REGISTER and 0 <= base.first < 128:
        offset = word(at, 0) if vector.kind is OperandKind.REGISTER else numbers.zero
        low = numbers.add(word(last, 0), offset)
        if base.count == 1:
            return Address(space, numbers.add(low, extra), numbers.zero)
        high = numbers.add_carry(word(last, 1), word(last, 0), offset)
        return Address(space, numbers.add(low, extra), high)
    if vector.kind is not OperandKind.REGISTER:
        return Address(space, extra, numbers.zero)
    high = word(at, 1) if vector.count == 2 else numbers.zero
    return Address(space, numbers.add(word(at, 0), extra), high)


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum without its constant and what constant steps of loops add to it.

    ``steps`` are numbers by which loops move it otherwise, and how many of them at once.
    """

    base: int
    steps: tuple[tuple[int, int], ...]

    def is_turn_of(self, other: Sum, numbers: Numbers) -> bool:
        """Whether it is the other one some turns on, or in larger steps."""
        if self == other:
            return True
        known = dict(other.steps)
        for step, count in self.steps:
            if step not in known or not is_multiple(count, known[step]):
                return False
        constant, terms = numbers.linear(numbers.subtract(self.base, other.base))
        return not constant and all(
            n in known and is_multiple(coefficient, known[n]) for n, coefficient in terms)


def is_multiple(count: int, unit: int) -> bool:
    """Whether ``count`` is a few times ``unit``, modulo 2^32 and with either sign."""
    count, unit = signed(count), signed(unit)
    return not count % unit and abs(count // unit) <= _MOST_TURNS


def signed(value: int) -> int:
    """A word as a number with a sign."""
    return value - _WHOLE if value & _SIGN else value


def without_turns(number: int, numbers: Numbers) -> tuple[Sum, int, int]:
    """What is left of a sum; its constant; and by what its loop moves it, 0 for nothing constant.
    """
    constant, terms = numbers.linear(number)
    kept: dict[int, int] = {}
    steps: dict[int, int] = {}
    by = 0
    for term, coefficient in terms:
        form = numbers.forms[term]
        if form[0] != "trip":
            kept[term] = coefficient
        elif len(form) == 1:
            by = abs(signed(coefficient))
        else:
            steps[numbers.parts(term)[0]] = coefficient
    for step, count in steps.items():
        if step in kept and is_multiple(kept[step], count):
            del kept[step]
    return Sum(numbers.sum_of(kept), tuple(sorted(steps.items()))), constant, by


def high_without_turns(number: int, numbers: Numbers) -> int:
    """An upper word without its constant and the carries of pointers, which follow from the lower
    word; how many of a loop's steps are taken at once, and after how many, is told by that, too."""
    kept = {}
    steps = set()
    for term, coefficient in numbers.linear(number)[1]:
        form = numbers.forms[term]
        parts = numbers.parts(term)
        if form[0] == "trip" and (not parts or numbers.forms[parts[0]][0] == "carries"):
            continue
        if is_carry_of_pointer(term, numbers):
            continue
        if form[0] == "trip" and is_multiple(coefficient, 1):
            steps.add(parts[0])
            coefficient = 1
        if (index := _extended(form, numbers)) is not None:
            term = index
        kept[term] = coefficient
    for step in steps:
        if step in kept and is_multiple(kept[step], 1):
            del kept[step]
    return numbers.sum_of(kept)


def is_carry_of_pointer(number: int, numbers: Numbers) -> bool:
    """Whether a number is the carry of a sum that has an address in it, once."""
    if numbers.forms[number][0] != "carries":
        return False
    total = numbers.sum_of(Counter(numbers.parts(number)))
    return any(coefficient == 1 and (term in numbers.pointers or numbers.forms[term][0] in (
        "loaded", "merge", "loop")) for term, coefficient in numbers.linear(total)[1])


def _extended(form: Form, numbers: Numbers) -> int | None:
    """The upper word of an index with a sign, shifted to the left, for all turns of its loop: the
    lower word tells which turn it is."""
    if form[0] != "high of shift":
        return None
    low, high, distance = form[1:]
    assert isinstance(low, int)
    assert isinstance(high, int)
    sign = numbers.forms[high]
    if sign[0] != "v_ashrrev_i32" or numbers.parts(high)[-1] != low or not any(
            numbers.forms[term][0] == "trip" for term, _ in numbers.linear(low)[1]):
        return None
    base = high_without_turns(low, numbers)
    return numbers.atom(("high of index", base, distance), (base,))
