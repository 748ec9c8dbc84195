"""Rules for sums of 64 bits in two registers, and for the carries between these.

The upper word of a sum is that of its summands plus one carry for all of them, so that it does not
matter in which order, and with which operations, they were added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from asmevo.isa.registers import SCC, VGPR0
from asmevo.isa.value_numbers import Numbers

# Distances of shifts that leave part of the lower word's bits in the upper one.
_LONGEST = 31


@dataclass(frozen=True, slots=True)
class Arguments:
    """Numbers of the words of each operand that is read, and of registers read implicitly."""

    operands: tuple[tuple[int, ...], ...]
    implied: Mapping[int, int]

    def word(self, operand: int, word: int = 0) -> int:
        words = self.operands[operand]
        return words[min(word, len(words) - 1)]

    def flat(self) -> tuple[int, ...]:
        return (*(n for words in self.operands for n in words), *self.implied.values())


# The number of what goes to ``register``, the ``word``-th of the destination (or another register).
Rule = Callable[[Numbers, Arguments, int, int], int | None]


def with_carry(n: Numbers, high: int, carry: int) -> int:
    """``high`` plus a carry, which may be one of a sum."""
    form = n.forms[carry]
    if form[0] == "carries" and len(form) == 3:
        return n.add_carry(high, *n.parts(carry))
    return n.add(high, carry)


def high_product(n: Numbers, a: int, b: int) -> int:
    """The upper word of an unsigned product."""
    if n.zero in (a, b):
        return n.zero
    return n.atom(("high product", *sorted((a, b))), (a, b))


def _high_of_shift(n: Numbers, low: int, high: int, distance: int) -> int:
    if not distance:
        return high
    if low == n.zero:
        return n.shift_left(high, n.constant(distance))
    return n.atom(("high of shift", low, high, distance), (low, high))


def _adds(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    """The second destination is a mask of carries, in a pair of scalar registers."""
    x, y = a.word(0), a.word(1)
    if register >= VGPR0:
        return n.add(x, y)
    carry = n.carries((x, y))
    return n.atom(("lane carries", carry, register & 1), (carry,))


def _adds_carry(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    carried = n.forms[a.word(2)]
    if register < VGPR0 or carried[0] != "lane carries":
        return None
    return with_carry(n, n.add(a.word(0), a.word(1)), n.parts(a.word(2))[0])


def _shifted_sum(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    distance = n.value_of(a.word(1))
    if distance is None or distance > _LONGEST:
        return None
    low = n.add(n.zero, a.word(0), 1 << distance)
    if not word:
        return n.add(low, a.word(2))
    high = _high_of_shift(n, a.word(0), a.word(0, 1), distance)
    return n.add_carry(n.add(high, a.word(2, 1)), low, a.word(2))


def _shift(value: int, distance: int) -> Rule:
    """The operands that are shifted, and by how much."""
    def rule(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
        by = n.value_of(a.word(distance))
        if by is None or by > _LONGEST or register == SCC:
            return None
        if not word:
            return n.add(n.zero, a.word(value), 1 << by)
        return _high_of_shift(n, a.word(value), a.word(value, 1), by)

    return rule


def _product_sum(n: Numbers, a: Arguments, register: int, word: int) -> int | None:
    if register < VGPR0:
        return None
    x, y = a.word(0), a.word(1)
    low = n.multiply(x, y)
    if not word:
        return n.add(low, a.word(2))
    return n.add_carry(n.add(high_product(n, x, y), a.word(2, 1)), low, a.word(2))


SCALAR_WIDE: dict[str, Rule] = {"s_lshl_b64": _shift(0, 1)}
VECTOR_WIDE: dict[str, Rule] = {
    "v_add_co_u32": _adds, "v_addc_co_u32": _adds_carry, "v_lshl_add_u64": _shifted_sum,
    "v_lshlrev_b64": _shift(1, 0), "v_mad_u64_u32": _product_sum,
}
