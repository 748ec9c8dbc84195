"""Values of a loop as they are some turns on, told by its addresses.

A loop that is unrolled or batched computes indices of several turns in one of its own. Of an index
whose steps the launch decides, the sign becomes part of the upper word of an address; both must be
of the same turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.isa.addresses import Sum, is_multiple, signed, without_turns
from asmevo.isa.instruction import Instruction, OperandKind
from asmevo.isa.value_graph import is_plain
from asmevo.isa.value_numbers import Numbers

_SIGNS = ("v_ashrrev_i32", "s_ashr_i32")
_LAST_BIT = 31


@dataclass(frozen=True, slots=True)
class Turn:
    """``on`` turns on, and ``at_once`` of them in one turn."""

    at_once: int
    on: int


def turns_between(low: Sum, other: Sum, numbers: Numbers) -> Mapping[int, Turn] | None:
    """By steps the turns between two sums of which ``low`` is the other one some turns on."""
    known = dict(other.steps)
    found = {step: Turn(signed(count) // signed(known[step]), 0) for step, count in low.steps
             if step in known and is_multiple(count, known[step])}
    if len(found) != len(known) or len(found) != len(low.steps):
        return None
    constant, terms = numbers.linear(numbers.subtract(low.base, other.base))
    if constant:
        return None
    for term, coefficient in terms:
        if term not in found or not is_multiple(coefficient, known[term]):
            return None
        found[term] = Turn(found[term].at_once, signed(coefficient) // signed(known[term]))
    return found


def turned_back(number: int, turns: Mapping[int, Turn], numbers: Numbers) -> int | None:
    """A number as it is without the turns; ``None`` where that cannot be told."""
    constant, terms = numbers.linear(number)
    if terms == ((number, 1),):
        return _turned_back_form(number, turns, numbers)
    coefficients = dict(terms)
    total = numbers.constant(constant)
    for step, turn in turns.items():
        trip = numbers.trip(step)
        if trip not in coefficients:
            continue
        count = signed(coefficients.pop(trip))
        if count % turn.at_once:
            return None
        total = numbers.add(total, trip, count // turn.at_once)
        total = numbers.add(total, step, -(count // turn.at_once) * turn.on, here=True)
    for term, coefficient in coefficients.items():
        back = _turned_back_form(term, turns, numbers)
        if back is None:
            return None
        total = numbers.add(total, back, coefficient, here=True)
    return total


def _turned_back_form(number: int, turns: Mapping[int, Turn], numbers: Numbers) -> int | None:
    trips = {numbers.trip(step): turn for step, turn in turns.items()}
    if number in trips:
        return number if trips[number] == Turn(1, 0) else None
    if not any(numbers.depends(number, trip) for trip in trips):
        return number
    form = numbers.forms[number]
    if form[0] != "high of shift" and sign_of(number, numbers) is None:
        return None
    backs: dict[int, int] = {}
    for part in numbers.parts(number):
        back = turned_back(part, turns, numbers)
        if back is None:
            return None
        backs[part] = back
    parts = [backs[part] for part in numbers.parts(number)]
    if form[0] == "high of shift":
        return numbers.atom(("high of shift", *parts, form[3]), parts)
    made = tuple(tuple(backs[n] for n in item) if position > 3 and isinstance(item, tuple) else item
                 for position, item in enumerate(form))
    return numbers.atom(made, parts)


def is_sign(i: Instruction) -> bool:
    """Whether a vector instruction fills a word with the sign of another one."""
    return (i.op == _SIGNS[0] and is_plain(i) and i.operands[1].kind is OperandKind.CONSTANT
            and i.operands[1].value == _LAST_BIT)


def sign_of(number: int, numbers: Numbers) -> int | None:
    """The number whose sign this is, in all bits."""
    form = numbers.forms[number]
    if form[0] not in _SIGNS or len(form) != 6 or form[1] or form[2]:
        return None
    first, second = form[4:]
    if not isinstance(first, tuple) or not isinstance(second, tuple):
        return None
    value, distance = (second, first) if form[0] == _SIGNS[0] else (first, second)
    return value[0] if numbers.value_of(distance[0]) == _LAST_BIT else None


def is_sign_of_turn(number: int, other: int, numbers: Numbers) -> bool:
    """Whether a number is the sign of what another one is the sign of, some turns on."""
    one, two = sign_of(number, numbers), sign_of(other, numbers)
    if one is None or two is None:
        return False
    (low, constant, by), (known, fixed, step) = (without_turns(n, numbers) for n in (one, two))
    return (constant == fixed and not by and not step
            and turns_between(low, known, numbers) is not None)
