"""Words of memory, numbered by where they are read from."""

from __future__ import annotations

import re

from asmevo.isa.addresses import Word, address_of, high_without_turns, without_turns
from asmevo.isa.instruction import Instruction
from asmevo.isa.value_numbers import Numbers, Taint

_NEAR = 16
_WIDE = re.compile(r"_(dwordx?\d*|b(32|64|96|128))$")
_PAIRED = re.compile(r"ds_read2(st64)?_b(32|64)")


def loaded_word(i: Instruction, word: Word, position: int, numbers: Numbers) -> int | None:
    """The ``position``-th word that a load gives: the same for loads of any number of words.

    Which turn of a loop it is read in is left open, also where some turns are written out: of what
    constants add to the address only the place within four words is kept, in loops not even that.
    """
    address = address_of(i, word, numbers)
    if address is None:
        return None
    distance = 4 * position
    if paired := _PAIRED.fullmatch(i.op):
        size = int(paired[2]) // 8
        half, rest = divmod(distance, size)
        offset = i.modifier(f"offset{half}")
        unit = size * (64 if paired[1] else 1)
        distance = rest + (offset * unit if isinstance(offset, int) else 0)
    kind = "" if _WIDE.search(i.op) or paired else i.op.rpartition("_load_")[2]
    place, constant, by = without_turns(
        numbers.add(address.low, numbers.constant(distance)), numbers)
    low = numbers.add(place.base, numbers.constant(0 if by else constant % _NEAR))
    high = high_without_turns(address.high, numbers)
    taint = Taint.LDS if address.space == "lds" else Taint.MEMORY
    # What is there may change between two loads.
    return numbers.atom(("loaded", address.space, kind, low, high), (low, high),
                        taint | Taint.PATH)
