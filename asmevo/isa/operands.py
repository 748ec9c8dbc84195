"""The operand grammar of LLVM's AMDGPU assembler for gfx90a, gfx942 and gfx950."""

from __future__ import annotations

import re
import struct
from functools import lru_cache

from asmevo.isa.errors import ParseError
from asmevo.isa.instruction import Operand, OperandKind
from asmevo.isa.registers import (
    AGPR0,
    AGPR_LIMIT,
    EXEC_HI,
    EXEC_LO,
    FLAT_SCRATCH_LO,
    M0,
    SCC,
    SGPR_LIMIT,
    TTMP0,
    VCC_HI,
    VCC_LO,
    VGPR0,
    VGPR_LIMIT,
    XNACK_MASK_LO,
)

# Register file letter -> (first register number, registers in the file).
_FILES = {
    "s": (0, SGPR_LIMIT), "v": (VGPR0, VGPR_LIMIT), "a": (AGPR0, AGPR_LIMIT),
    "ttmp": (TTMP0, 16),
}

# Named scalar registers -> (register number, dwords).
_NAMED_REGISTERS = {
    "vcc": (VCC_LO, 2), "vcc_lo": (VCC_LO, 1), "vcc_hi": (VCC_HI, 1),
    "exec": (EXEC_LO, 2), "exec_lo": (EXEC_LO, 1), "exec_hi": (EXEC_HI, 1),
    "m0": (M0, 1),
    "flat_scratch": (FLAT_SCRATCH_LO, 2), "flat_scratch_lo": (FLAT_SCRATCH_LO, 1),
    "flat_scratch_hi": (FLAT_SCRATCH_LO + 1, 1),
    "xnack_mask": (XNACK_MASK_LO, 2), "xnack_mask_lo": (XNACK_MASK_LO, 1),
    "xnack_mask_hi": (XNACK_MASK_LO + 1, 1),
}

# Source-only values -> the registers they are computed from, or None for launch constants.
_NAMED_SOURCES: dict[str, tuple[int, int] | None] = {
    "scc": (SCC, 1), "src_scc": (SCC, 1),
    "vccz": (VCC_LO, 2), "src_vccz": (VCC_LO, 2),
    "execz": (EXEC_LO, 2), "src_execz": (EXEC_LO, 2),
    "src_shared_base": None, "shared_base": None,
    "src_shared_limit": None, "shared_limit": None,
    "src_private_base": None, "private_base": None,
    "src_private_limit": None, "private_limit": None,
    "src_pops_exiting_wave_id": None, "pops_exiting_wave_id": None,
}

_REGISTER = re.compile(r"(s|v|a|ttmp)(?:([0-9]{1,3})|\[([0-9]{1,3})(?::([0-9]{1,3}))?\])")
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)")
_FLOAT = re.compile(r"-?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_SYMBOL = re.compile(r"([A-Za-z_.$][A-Za-z0-9_.$]*)@(?:rel|abs|gotpcrel)32@(?:lo|hi)"
                     r"(?:([+-])([0-9]+|0[xX][0-9a-fA-F]+))?")
_LABEL = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$@]*")
_CALL = re.compile(r"([a-z_]+)\((.*)\)")

_GPR_INDEX_BITS = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}

# Hardware register ids (LLVM, SIDefines: hwreg); those from XCC_ID on are new in gfx942.
_HARDWARE_REGISTERS = {
    "HW_REG_MODE": 1, "HW_REG_STATUS": 2, "HW_REG_TRAPSTS": 3, "HW_REG_HW_ID": 4,
    "HW_REG_GPR_ALLOC": 5, "HW_REG_LDS_ALLOC": 6, "HW_REG_IB_STS": 7, "HW_REG_SH_MEM_BASES": 15,
    "HW_REG_TBA_LO": 16, "HW_REG_TBA_HI": 17, "HW_REG_TMA_LO": 18, "HW_REG_TMA_HI": 19,
    "HW_REG_XCC_ID": 20, "HW_REG_SQ_PERF_SNAPSHOT_DATA": 21,
    "HW_REG_SQ_PERF_SNAPSHOT_DATA1": 22, "HW_REG_SQ_PERF_SNAPSHOT_PC_LO": 23,
    "HW_REG_SQ_PERF_SNAPSHOT_PC_HI": 24,
}

_MESSAGES = {
    "MSG_INTERRUPT": 1, "MSG_SAVEWAVE": 4, "MSG_STALL_WAVE_GEN": 5, "MSG_HALT_WAVES": 6,
    "MSG_ORDERED_PS_DONE": 7, "MSG_EARLY_PRIM_DEALLOC": 8, "MSG_GS_ALLOC_REQ": 9,
    "MSG_GET_DOORBELL": 10,
}


def parse_integer(text: str) -> int:
    """An integer literal in LLVM's notation (decimal, ``0x``, ``0b``, negative).

    Raises ParseError when it is not one.
    """
    if not _INTEGER.fullmatch(text) or len(text) > 40:
        raise ParseError(f"'{text[:40]}' is not an integer")
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text)
    base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
    return sign * int(digits, base)


@lru_cache(maxsize=1 << 13)
def parse_source(text: str) -> Operand:
    """One register, constant, ``off``, named value or symbol with its input modifiers.

    Raises ParseError for anything else, for registers outside their file and for constants that do
    not fit 32 bits.
    """
    body, neg, absolute, sext = _strip_modifiers(text)
    operand = _register(body) or _named(body) or _constant(body) or _symbol(body)
    if operand is None:
        raise ParseError(f"'{text[:60]}' is not an operand")
    if neg or absolute or sext:
        operand = Operand(operand.kind, operand.text, operand.first, operand.count, operand.value,
                          neg, absolute, sext)
    return operand


def parse_immediate(text: str) -> Operand:
    """An instruction field: a constant, ``hwreg(..)``, ``sendmsg(..)`` or ``gpr_idx(..)``.

    A named field becomes ``NAMED`` and ``value`` holds its encoding.
    """
    constant = _constant(text)
    if constant is not None:
        return constant
    call = _CALL.fullmatch(text)
    if call is None:
        raise ParseError(f"'{text[:60]}' is not an immediate")
    arguments = [a.strip() for a in call[2].split(",")] if call[2].strip() else []
    match call[1]:
        case "gpr_idx":
            value = _gpr_index(arguments)
        case "hwreg":
            value = _hardware_register(arguments)
        case "sendmsg":
            value = _message(arguments)
        case _:
            raise ParseError(f"'{text[:60]}' is not an immediate")
    return Operand(OperandKind.NAMED, text, value=value)


def parse_target(text: str) -> Operand:
    """A branch target: a label, or the signed 16-bit instruction-word offset."""
    if _INTEGER.fullmatch(text):
        value = parse_integer(text)
        if not -0x8000 <= value <= 0xFFFF:
            raise ParseError(f"branch offset {value} does not fit 16 bits")
        return Operand(OperandKind.TARGET, text, value=(value + 0x8000) % 0x10000 - 0x8000)
    if _LABEL.fullmatch(text):
        return Operand(OperandKind.TARGET, text)
    raise ParseError(f"'{text[:60]}' is not a branch target")


def _strip_modifiers(text: str) -> tuple[str, bool, bool, bool]:
    neg = absolute = sext = False
    body = text
    if body.startswith("sext(") and body.endswith(")"):
        body, sext = body[5:-1].strip(), True
    if body.startswith("neg(") and body.endswith(")"):
        body, neg = body[4:-1].strip(), True
    elif (body.startswith("-") and body[1:2].isalpha()) or body.startswith("-|"):
        body, neg = body[1:].strip(), True
    if body.startswith("|") and body.endswith("|") and len(body) > 2:
        body, absolute = body[1:-1].strip(), True
    elif body.startswith("abs(") and body.endswith(")"):
        body, absolute = body[4:-1].strip(), True
    return body, neg, absolute, sext


def _register(text: str) -> Operand | None:
    named = _NAMED_REGISTERS.get(text)
    if named is not None:
        return Operand(OperandKind.REGISTER, text, *named)
    match = _REGISTER.fullmatch(text)
    if match is None:
        return None
    start, size = _FILES[match[1]]
    low = int(match[2] or match[3])
    high = int(match[4]) if match[4] else low
    if not low <= high < size:
        raise ParseError(f"register '{text}' does not exist")
    return Operand(OperandKind.REGISTER, text, start + low, high - low + 1)


def _named(text: str) -> Operand | None:
    if text == "off":
        return Operand(OperandKind.OFF, text)
    if text not in _NAMED_SOURCES:
        return None
    registers = _NAMED_SOURCES[text]
    if registers is None:
        return Operand(OperandKind.NAMED, text)
    return Operand(OperandKind.NAMED, text, *registers)


def _constant(text: str) -> Operand | None:
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text) and len(text) <= 64:
        try:
            bits = struct.unpack("<I", struct.pack("<f", float(text)))[0]
        except OverflowError:
            raise ParseError(f"constant {text} does not fit 32 bits") from None
        return Operand(OperandKind.CONSTANT, text, value=bits)
    return None


def _symbol(text: str) -> Operand | None:
    match = _SYMBOL.fullmatch(text)
    if match is None:
        return None
    value = parse_integer(match[3]) if match[3] else 0
    if value >= 1 << 31:
        raise ParseError(f"the offset of '{text[:60]}' does not fit 32 bits")
    return Operand(OperandKind.SYMBOL, text, value=-value if match[2] == "-" else value)


def _integer(text: str) -> Operand:
    value = parse_integer(text)
    if not -(1 << 31) <= value < 1 << 32:
        raise ParseError(f"constant {text[:40]} does not fit 32 bits")
    return Operand(OperandKind.CONSTANT, text, value=value & 0xFFFFFFFF)


def _gpr_index(arguments: list[str]) -> int:
    value = 0
    for argument in arguments:
        if argument not in _GPR_INDEX_BITS:
            raise ParseError(f"'{argument[:40]}' is not a VGPR indexing mode")
        value |= _GPR_INDEX_BITS[argument]
    return value


def _hardware_register(arguments: list[str]) -> int:
    if len(arguments) not in (1, 3):
        raise ParseError("hwreg takes a register, or a register, an offset and a width")
    number = _HARDWARE_REGISTERS.get(arguments[0])
    if number is None:
        number = parse_integer(arguments[0])
    offset, width = (parse_integer(a) for a in arguments[1:]) if arguments[1:] else (0, 32)
    if not (0 <= number < 64 and 0 <= offset < 32 and 1 <= width <= 32):
        raise ParseError(f"hwreg({', '.join(arguments)[:60]}) is out of range")
    return number | offset << 6 | (width - 1) << 11


def _message(arguments: list[str]) -> int:
    """``sendmsg(message[, operation[, stream]])``; operations and streams as numbers only."""
    if not 1 <= len(arguments) <= 3:
        raise ParseError("sendmsg takes a message, an operation and a stream")
    number = _MESSAGES.get(arguments[0])
    if number is None:
        number = parse_integer(arguments[0])
    operation, stream = (*(parse_integer(a) for a in arguments[1:]), 0, 0)[:2]
    if not (0 <= number < 16 and 0 <= operation < 8 and 0 <= stream < 4):
        raise ParseError(f"sendmsg({', '.join(arguments)[:60]}) is out of range")
    return number | operation << 4 | stream << 8
