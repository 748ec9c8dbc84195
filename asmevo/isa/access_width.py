"""Bytes that one lane (or, for scalar memory, the wave) of a memory instruction moves."""

from __future__ import annotations

import re

from asmevo.isa.instruction import Instruction

_NAMED = {"byte": 1, "ubyte": 1, "sbyte": 1, "short": 2, "ushort": 2, "sshort": 2, "dword": 4}
_DWORDS = re.compile(r"dwordx(\d+)")
_TYPED = re.compile(r"[buif](8|16|32|64|96|128)|bf16")
_CHANNELS = re.compile(r"xyzw|xyz|xy|x")


def access_bytes(instruction: Instruction) -> int | None:
    """The width that the operation's name gives, ``None`` for what is no access of a known width.

    An atomic that returns the old value counts once.
    """
    if not instruction.accesses_memory:
        return None
    words = instruction.op.split("_")
    times = 2 if any(word.startswith(("read2", "write2", "wrxchg2")) for word in words) else 1
    if "format" in words:
        channels = next((w for w in reversed(words) if _CHANNELS.fullmatch(w)), "")
        return len(channels) * (2 if "d16" in words else 4) or None
    if "pk" in words:
        return 4
    if "atomic" in words:
        wide = "x2" in words or "f64" in words
        return 8 if wide else 4
    for word in reversed(words):
        dwords = _DWORDS.fullmatch(word)
        if dwords:
            return 4 * int(dwords[1])
        if word in _NAMED:
            return _NAMED[word]
        typed = _TYPED.fullmatch(word)
        if typed and typed[1]:
            return times * int(typed[1]) // 8
    return None
