"""Which arguments a kernel makes use of, and whether its addresses carry.

An argument that every tested launch gives one value can be built into the code, and no launch
shows it; so each word of the kernarg from which something comes in the original must be used by the
candidate as well. Nor does a launch show that a sum with a pointer in it lacks a carry into its
upper word, unless the upper word changes on the way: so an upper word must depend on all that the
lower one does where it does so in the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from asmevo.isa.addresses import Sum, address_pair, without_turns
from asmevo.isa.dataflow import useful
from asmevo.isa.instruction import Unit
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.registers import members
from asmevo.isa.value_numbers import Numbers
from asmevo.isa.values import Values


@dataclass(frozen=True)
class ArgumentUses:
    """The offsets of the ``words`` of the kernarg that are used, and the lower words of addresses
    of which the upper one knows too little, with where they are accessed first."""

    words: frozenset[int]
    uncarried: dict[Sum, int]

    @staticmethod
    def of(values: Values) -> ArgumentUses:
        numbers = values.numbers
        after = useful(values.program)
        words: set[int] = set()
        uncarried: dict[Sum, int] = {}
        known: dict[tuple[int, int], bool] = {}
        for index, i in enumerate(values.program.instructions):
            if not i.accesses_memory or not values.cfg.reachable(index):
                continue
            if i.unit is Unit.SMEM and i.is_load:
                for register in members(i.writes & after[index]):
                    form = numbers.forms[values.after(index, register)]
                    if form[0] == "kernarg":
                        assert isinstance(form[1], int)
                        words.add(form[1])
            pair = _address_pair(i.text)
            if pair is None:
                continue
            low, high = (values.exact_before(index, pair + half) for half in (0, 1))
            if (low, high) not in known:
                known[low, high] = _lacks_carry(low, high, numbers)
            if known[low, high]:
                uncarried.setdefault(without_turns(low, numbers)[0], index)
        return ArgumentUses(frozenset(words), uncarried)


@lru_cache(maxsize=1 << 14)
def _address_pair(text: str) -> int | None:
    return address_pair(parse(text))


def _lacks_carry(low: int, high: int, numbers: Numbers) -> bool:
    """Whether an upper word does not depend on what is added to a pointer's lower one.

    It depends on all terms of the sum, or on what they are made of: the upper word of a product
    that is a term is another product of the same.
    """
    constant, terms = numbers.linear(low)
    pointers = [n for n, coefficient in terms if n in numbers.pointers and coefficient == 1]
    if not pointers or (not constant and len(terms) == 1):
        return False
    known = numbers.closure((high,))
    if not known.issuperset(pointers):
        return True
    turns = any(numbers.forms[n][0] == "trip" for n, _ in terms)
    if turns and all(numbers.forms[n][0] != "trip" for n in known):
        return True
    # A sum without terms is a constant.
    leaves = set(numbers.leaves(high))
    return any(n not in known and numbers.forms[n][0] != "trip"
               and not all(form in leaves or form[0] == "linear" for form in numbers.leaves(n))
               for n, _ in terms)


def lost_uses(
    original: ArgumentUses, candidate: ArgumentUses, program: Program
) -> Iterator[tuple[str, str]]:
    """``lost-launch-operand`` or ``lost-carry`` and a sentence for each use that is gone."""
    for word in sorted(original.words - candidate.words):
        yield "lost-launch-operand", (
            f"nothing depends on the kernarg at {word:#x}, which the original makes use of")
    for total, index in candidate.uncarried.items():
        if total not in original.uncarried:
            yield "lost-carry", (
                f"'{program.instructions[index].text}' at {program.offsets[index]:#x} takes an "
                "address whose upper word does not follow from its lower one")
