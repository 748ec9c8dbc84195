"""The addresses that a kernel accesses, compared with the original's.

An address that is right on every tested launch may be wrong on others: a token's number that is cut
to seven bits serves 128 tokens. So each address must be one that the original accesses, where
constants and the turns of loops are left aside (`asmevo.isa.addresses`): what arguments, ids, and
integers read from memory make of it must be the same. Addresses in LDS on which only work-item ids
and loops have a say are free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from asmevo.isa.addresses import Sum, address_of, high_without_turns, without_turns
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import M0, M0_MASK
from asmevo.isa.turns import turned_back, turns_between
from asmevo.isa.value_numbers import Numbers, Taint
from asmevo.isa.values import Values

# An address is followed to so many others that it may be.
_MOST_CHOICES = 32
_OWN = Taint.WORK_ITEM | Taint.PATH


@dataclass(frozen=True, slots=True)
class Access:
    """What is done to which space, the sum that is the lower word of its address, and the upper."""

    kind: str
    space: str
    low: Sum
    high: int


def address_uses(values: Values, indices: range) -> dict[Access, int]:
    """All accesses of some instructions but those of the kernarg, and where they are first."""
    found: dict[Access, int] = {}
    seen: dict[tuple[str, str, int, int], None] = {}
    for index in indices:
        i = values.program.instructions[index]
        if not i.accesses_memory:
            continue
        for kind, space, low, high in _accesses(values, index, i):
            key = kind, space, low, high
            if key in seen:
                continue
            seen[key] = None
            access = Access(kind, space, without_turns(low, values.numbers)[0],
                            high_without_turns(high, values.numbers))
            found.setdefault(access, index)
    return found


def _accesses(values: Values, index: int, i: Instruction) -> Iterator[tuple[str, str, int, int]]:
    numbers = values.numbers

    def word(operand: int, part: int) -> int:
        given = i.operands[operand]
        if given.count <= 0:
            return numbers.constant(given.value)
        return values.exact_before(index, given.first + part)

    if i.reads & M0_MASK and i.is_load:
        # Where in LDS it is put.
        yield from _free(numbers, "store", "lds", values.exact_before(index, M0), numbers.zero)
    if i.unit is Unit.SMEM and i.is_load and numbers.forms[
            values.after(index, i.operands[0].first)][0] == "kernarg":
        return
    address = address_of(i, word, numbers)
    if address is not None:
        yield from _free(numbers, "load" if i.is_load else "store", address.space, address.low,
                         address.high)


def _free(numbers: Numbers, kind: str, space: str, low: int, high: int
          ) -> Iterator[tuple[str, str, int, int]]:
    if space != "lds" or numbers.taints[low] & ~_OWN:
        yield kind, space, low, high


def changed_addresses(
    original: Mapping[Access, int], candidate: Mapping[Access, int], program: Program,
    numbers: Numbers,
) -> Iterator[tuple[str, str]]:
    """``new-launch-address`` and a sentence for each access that the original does not have."""
    def known(access: Access) -> bool:
        return access in original or any(
            access.kind == other.kind and access.space == other.space
            and access.low.is_turn_of(other.low, numbers)
            and (access.high == other.high or _is_same_turn(access, other, numbers))
            for other in original)

    for access, index in candidate.items():
        if known(access) or all(map(known, _by_path(access, numbers))):
            continue
        yield "new-launch-address", (
            f"'{program.instructions[index].text}' at {program.offsets[index]:#x} accesses an "
            "address that the original does not")


def _is_same_turn(access: Access, other: Access, numbers: Numbers) -> bool:
    """Whether the upper word is the other one as many turns on as the lower one is."""
    turns = turns_between(access.low, other.low, numbers)
    return turns is not None and turned_back(access.high, turns, numbers) == other.high


def _by_path(access: Access, numbers: Numbers) -> Iterator[Access]:
    """The accesses of which this is one, by the path taken; itself if it is not of that kind.

    Copies of a loop's code behind it find the addresses of whichever turn was the last one.
    """
    for low in _choices(access.low.base, numbers):
        total = without_turns(low, numbers)[0]
        steps = tuple(sorted({*total.steps, *access.low.steps}))
        for high in _choices(access.high, numbers):
            yield Access(access.kind, access.space, Sum(total.base, steps),
                         high_without_turns(high, numbers))


def _choices(number: int, numbers: Numbers) -> list[int]:
    """A sum with each of the values that one of its terms may be."""
    pending = [number]
    found: list[int] = []
    while pending:
        here = pending.pop()
        term = next((n for n, coefficient in numbers.linear(here)[1]
                     if coefficient == 1 and numbers.forms[n][0] == "merge"), None)
        if term is None or len(pending) + len(found) > _MOST_CHOICES:
            found.append(here)
            continue
        rest = numbers.without_term(here, term)
        pending += [numbers.add(rest, part) for part in numbers.parts(term)]
    return found
