"""Other registers in an instruction's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from asmevo.isa.registers import AGPR0, VGPR0

_REGISTER = re.compile(r"(?<![\w.])([vsa])(?:(\d+)|\[(\d+):(\d+)\])(?![\w:(])")
_BASES = {"s": 0, "v": VGPR0, "a": AGPR0}


def renamed(text: str, registers: Mapping[int, int], *, only: int | None = None) -> str | None:
    """The text with registers replaced by number; ``only`` renames that operand alone.

    Operands are counted over registers of the numbered files. ``None`` when an operand of several
    registers would fall apart.
    """
    count = -1
    failed = False

    def replace(match: re.Match[str]) -> str:
        nonlocal count, failed
        count += 1
        file = match[1]
        low = int(match[2] or match[3])
        high = int(match[4] or low)
        if only is not None and count != only:
            return match[0]
        base = _BASES[file]
        moved = [registers.get(base + n, base + n) for n in range(low, high + 1)]
        if any(b - a != 1 for a, b in pairwise(moved)):
            failed = True
        first = moved[0] - base
        return (f"{file}{first}" if match[2] else f"{file}[{first}:{first + high - low}]")

    mnemonic, space, operands = text.partition(" ")
    out = _REGISTER.sub(replace, operands)
    return None if failed else f"{mnemonic}{space}{out}"
