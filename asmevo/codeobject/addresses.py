"""Code addresses that a kernel computes from its program counter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.errors import CodeObjectError

# How far behind `s_getpc_b64` the additions may be; LLVM emits them next to it.
_WINDOW = 8
_GETPC = re.compile(r"s_getpc_b64 s\[(\d+):(\d+)\]")
_ADD = re.compile(r"s_(add|addc)_[ui]32 s(\d+), (?:s(\d+), (-?(?:0x[0-9a-f]+|\d+))"
                  r"|(-?(?:0x[0-9a-f]+|\d+)), s(\d+))")


@dataclass(frozen=True, slots=True)
class CodeAddress:
    """One `s_getpc_b64` and the two additions that make an address of it.

    ``rows`` are the indices of the three instructions, ``register`` the low SGPR of the pair that
    holds the result and ``target`` the address, in the numbering of the listing's offsets.
    """

    rows: tuple[int, int, int]
    register: int
    target: int


def code_addresses(listing: Sequence[Row]) -> tuple[CodeAddress, ...]:
    """Every address computed from the program counter.

    Raises `CodeObjectError` naming a computation of another shape, whose result is unknown.
    """
    found: list[CodeAddress] = []
    for index, (offset, _, text) in enumerate(listing):
        if not text.startswith("s_getpc_b64"):
            continue
        address = _resolved(listing, index)
        if address is None:
            raise CodeObjectError(f"'{text}' at offset {offset:#x} computes a code address that "
                                  "cannot be followed")
        found.append(address)
    return tuple(found)


def _resolved(listing: Sequence[Row], index: int) -> CodeAddress | None:
    offset, size, text = listing[index]
    pair = _GETPC.fullmatch(text)
    if pair is None:
        return None
    halves = {"add": int(pair[1]), "addc": int(pair[2])}
    values: dict[str, tuple[int, int]] = {}
    for at in range(index + 1, min(index + 1 + _WINDOW, len(listing))):
        match = _ADD.fullmatch(listing[at][2])
        if match is None:
            continue
        kind, destination = match[1], int(match[2])
        source = int(match[3] or match[6])
        if destination == source == halves[kind]:
            values.setdefault(kind, (at, int(match[4] or match[5], 0)))
        if len(values) == 2:
            break
    if len(values) != 2:
        return None
    low, high = values["add"][1] & 0xFFFFFFFF, values["addc"][1] & 0xFFFFFFFF
    distance = (high << 32 | low)
    distance -= (distance >> 63) << 64
    return CodeAddress((index, values["add"][0], values["addc"][0]), halves["add"],
                       offset + size + distance)
