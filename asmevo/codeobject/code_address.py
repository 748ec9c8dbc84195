"""Addresses that code computes from its own: what the linker resolved, to be made symbolic again.

LLVM makes an address out of the program counter in three instructions::

    s_getpc_b64 s[4:5]
    s_add_u32   s4, s4, symbol@rel32@lo+4
    s_addc_u32  s5, s5, symbol@rel32@hi+12

In a linked object the two literals are numbers, which go stale when an edit moves the code or what
it points to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.errors import CodeObjectError

_GETPC = re.compile(r"s_getpc_b64 (s\[(\d+):(\d+)\]|vcc)")
_ADD = re.compile(r"(s_addc?_u32) (\S+), (\S+), (\S+)")
_ENDS = re.compile(r"s_c?branch|s_setpc|s_swappc|s_call|s_endpgm")
# Instructions in a row within which the additions must follow; LLVM puts them next to each other.
_REACH = 16


@dataclass(frozen=True, slots=True)
class CodeAddress:
    """One address computation; indices count the rows of the listing.

    ``base`` is the offset that ``s_getpc_b64`` returns and ``value`` what is added to it. ``low``
    and ``high`` are the additions; ``high`` is -1 when the upper half is an inline constant, which
    stays.
    """

    getpc: int
    low: int
    high: int
    base: int
    value: int


def code_addresses(code: bytes, listing: Sequence[Row]) -> Iterator[CodeAddress]:
    """All address computations of a function.

    Raises `CodeObjectError` for a program counter that is used in another way.
    """
    for index, (offset, size, text) in enumerate(listing):
        if text.startswith("s_getpc_b64"):
            found = _additions(code, listing, index)
            if found is None:
                raise CodeObjectError(
                    f"recovery does not handle '{text}' (offset {offset:#x}): the address made "
                    "from it is not a sum with literals, and would not follow an edit")
            low, high, value = found
            yield CodeAddress(index, low, high, offset + size, value)


def symbolic(text: str, symbol: str, part: str, base: str) -> str:
    """An addition with ``symbol`` in place of its literal; ``part`` is ``rel32@lo`` or the like.

    The distance to ``base``, the label behind ``s_getpc_b64``, is written as an expression so that
    it stays right when an instruction is inserted between the two.
    """
    match = _ADD.fullmatch(text)
    if match is None:
        raise CodeObjectError(f"'{text}' is not an addition of a literal")
    return f"{match[1]} {match[2]}, {match[3]}, {symbol}@{part}+4+(.-{base})"


def _additions(code: bytes, listing: Sequence[Row], index: int) -> tuple[int, int, int] | None:
    match = _GETPC.fullmatch(listing[index][2])
    if match is None:
        return None
    first, second = ("vcc_lo", "vcc_hi") if match[1] == "vcc" else (f"s{match[2]}", f"s{match[3]}")
    low = -1
    value = 0
    for at in range(index + 1, min(index + 1 + _REACH, len(listing))):
        offset, size, text = listing[at]
        add = _ADD.fullmatch(text)
        literal = int.from_bytes(code[offset + 4:offset + 8], "little") if size == 8 else None
        if add and add[1] == "s_add_u32" and add[3] == first and low < 0 and literal is not None:
            low, value = at, literal
        elif add and add[1] == "s_addc_u32" and add[3] == second and low >= 0:
            if literal is not None:
                return low, at, _signed(literal << 32 | value)
            if add[4] in ("0", "-1"):
                return low, -1, _signed((0xFFFFFFFF if add[4] == "-1" else 0) << 32 | value)
            return None
        elif _ENDS.match(text) or _writes(text, int(match[2] or -1), int(match[3] or -1)):
            return None
    return None


def _writes(text: str, first: int, last: int) -> bool:
    """Whether an instruction's first operand covers one of the two scalar registers."""
    match = re.match(r"\S+ s(?:(\d+)|\[(\d+):(\d+)\])(?:,|$)", text)
    if match is None:
        return text.split(" ", 1)[-1].startswith("vcc") and first < 0
    start, stop = (int(match[1]),) * 2 if match[1] else (int(match[2]), int(match[3]))
    return start <= last and first <= stop


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
