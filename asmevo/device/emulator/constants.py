"""The bits that a constant of an instruction puts into a source operand.

Sources: CDNA3 ISA, "Instruction Operands" and "Literal Expansion to 64 bits"; for packed operands
LLVM, AMDGPUBaseInfo: getInlineEncodingV2F16 (a float fills the low half, an integer all 32 bits).
"""

from __future__ import annotations

import struct

from asmevo.isa.instruction import Operand

# The inline floats that every format holds exactly, and 1/(2*pi) in each.
_INLINE = frozenset({0.5, 1.0, 2.0, 4.0})
_INVERSE_TWO_PI = 0.15915494
_INVERSE_TWO_PI_BITS = {"<e": 0x3118, "<f": 0x3E22F983, "<d": 0x3FC45F306DC9C882}


def constant_bits(operand: Operand, kind: str, words: int) -> tuple[int, int]:
    """Low and high dword of a constant in a source of type ``kind`` (`core.SOURCE_TYPES`).

    Raises ValueError for one that the format does not have.
    """
    is_float = "." in operand.text
    if words > 2:
        raise ValueError(f"constant '{operand.text}' of {words} dwords is not modelled")
    if kind == "singles":
        return operand.value, 0
    if words == 2:
        bits = _wide_float(operand) if is_float else _wide_integer(operand, kind)
        return bits & 0xFFFFFFFF, bits >> 32
    if kind in ("short", "half", "pair") and is_float:
        return _float(operand, "<e"), 0
    return operand.value, 0


def half_bits(operand: Operand) -> int:
    """A constant as an f16 operand of a mixed-precision operation."""
    return _float(operand, "<e") if "." in operand.text else operand.value


def _wide_integer(operand: Operand, kind: str) -> int:
    # LLVM writes literals as unsigned hexadecimal, and the inline integers as decimal numbers. What
    # reads as f64 has no literal integers: the literal is the upper half.
    is_inline = not operand.text.lower().lstrip("-").startswith("0x") and (
        operand.value <= 64 or operand.value >= 0xFFFFFFF0)
    if kind == "wide" and not is_inline:
        return operand.value << 32
    negative = operand.value >> 31 if is_inline or kind == "signed64" else 0
    return operand.value | (0xFFFFFFFF_00000000 if negative else 0)


def _wide_float(operand: Operand) -> int:
    bits = _float(operand, "<d")
    value = abs(float(operand.text))
    if value in _INLINE or bits & ~(1 << 63) == _INVERSE_TWO_PI_BITS["<d"]:
        return bits
    return bits & 0xFFFFFFFF_00000000


def _float(operand: Operand, code: str) -> int:
    value = float(operand.text)
    # LLVM prints 1/(2*pi) with the digits that the format needs.
    if f"{abs(value):.8f}"[:10] == str(_INVERSE_TWO_PI)[:10]:
        return _INVERSE_TWO_PI_BITS[code]
    try:
        packed = struct.pack(code, value)
    except OverflowError:
        raise ValueError(f"constant '{operand.text}' does not fit its operand") from None
    return int.from_bytes(packed, "little")
