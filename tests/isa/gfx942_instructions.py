"""Every mnemonic that LLVM prints for gfx942, found by decoding every opcode of every encoding.

The opcode field of each microcode format (CDNA3 ISA, "Microcode Formats") is run through all its
values, with operands of which each operation accepts at least one choice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from asmevo.codeobject import disassemble
from asmevo.codeobject.target import Target

_NOP = 0xBF80_0000
_V4, _V6, _V8 = 256 + 4, 256 + 6, 256 + 8
_SDWA, _DPP = 249, 250
# src0 = v4, whole dwords; one or two sources, and a compare that writes VCC.
_SDWA_WORDS = (0x0006_0604, 0x0606_0604, 0x0606_0004)
_DPP_WORD = 0xFF00_0004 | 0x150 << 8
_HWREG_MODE, _CALL = 0xF801, 21
_FIRST_MATRIX = 62
# Destination v16, data v8 and v6, address v4, as far as an operation has them.
_DS_WORDS = (0x1008_0604, 0x1000_0604, 0x1000_0004, 0x0008_0604, 0x0000_0604, 0x1000_0000,
             0x0000_0004, 0x0000_0400, 0)


def _scalar() -> Iterator[tuple[str, tuple[int, ...]]]:
    for op in range(128):
        yield "SOPP", (0xBF80_0000 | op << 16,)
        yield "SOPC", (0xBF00_0000 | op << 16 | 4 << 8 | 8,)
    for op in range(256):
        yield "SOP1", (0xBE80_0000 | 2 << 16 | op << 8 | 4,)
    for op in range(32):
        # s_setreg_imm32 has a literal; s_call goes to the next instruction.
        immediate = 0 if op == _CALL else _HWREG_MODE
        yield "SOPK", (0xB000_0000 | op << 23 | 2 << 16 | immediate, 0)
    for op in range(0x7D):
        yield "SOP2", (0x8000_0000 | op << 23 | 2 << 16 | 4 << 8 | 8,)


def _vector() -> Iterator[tuple[str, tuple[int, ...]]]:
    for op in range(128):
        # Packed operations with their own halves, matrix operations with VGPRs.
        if op < _FIRST_MATRIX:
            yield "VOP3P", (0xD380_4000 | op << 16 | 2, 0x1800_0000 | _V8 << 18 | _V6 << 9 | _V4)
            yield "VOP3P", (0xD380_4000 | op << 16 | 2, 0x1800_0000 | _V6 << 9 | _V4)
        yield "VOP3P", (0xD380_0000 | op << 16 | 2, _V8 << 18 | _V6 << 9 | _V4)
        yield "VOP3P", (0xD380_0000 | op << 16 | 2, _V4)
    for op in range(62):
        yield "VOP2", (op << 25 | 2 << 17 | 6 << 9 | _V4, 0)
        yield "VOP2", (op << 25 | 2 << 17 | 6 << 9 | _DPP, _DPP_WORD)
        for word in _SDWA_WORDS:
            yield "VOP2", (op << 25 | 2 << 17 | 6 << 9 | _SDWA, word)
    for op in range(256):
        yield "VOP1", (0x7E00_0000 | 2 << 17 | op << 9 | _V4,)
        yield "VOP1", (0x7E00_0000 | op << 9,)
        yield "VOP1", (0x7E00_0000 | 2 << 17 | op << 9 | _DPP, _DPP_WORD)
        yield "VOPC", (0x7C00_0000 | op << 17 | 6 << 9 | _V4,)
        for word in _SDWA_WORDS:
            yield "VOP1", (0x7E00_0000 | 2 << 17 | op << 9 | _SDWA, word)
            yield "VOPC", (0x7C00_0000 | op << 17 | 6 << 9 | _SDWA, word)
    for op in range(1024):
        if 0x380 <= op < 0x400:
            continue  # VOP3P
        for sources in ((_V4, _V6, _V8), (_V4, _V6, 0), (_V4, _V6, 8), (_V4, 8, 8), (_V4, 0, 0),
                        (4, 6, 0), (_V4, 6, 0)):
            first, second, third = sources
            yield "VOP3", (0xD000_0000 | op << 16 | 2, third << 18 | second << 9 | first)


def _memory() -> Iterator[tuple[str, tuple[int, ...]]]:
    for op in range(256):
        for immediate in (1, 0):
            yield "SMEM", (0xC000_0000 | op << 18 | immediate << 17 | 8 << 6 | 2, 0)
        for word in _DS_WORDS:
            yield "DS", (0xD800_0000 | op << 17, word)
            yield "DS", (0xD801_0000 | op << 17, word)
    for op in range(128):
        for segment in range(3):
            for scalar in (0x7F, 0x04, 0):
                for registers in (0x1000_0804, 0x1000_0004, 0x0000_0804):
                    yield "FLAT", (0xDC00_0000 | op << 18 | segment << 14,
                                   registers | scalar << 16)
        yield "MUBUF", (0xE000_1000 | op << 18, 0x8002_0804)
        yield "MUBUF", (0xE000_0000 | op << 18, 0)
    for op in range(16):
        yield "MTBUF", (0xE800_1000 | op << 15 | 4 << 19 | 7 << 23, 0x8002_0804)


def instructions() -> dict[str, tuple[str, str]]:
    """Mnemonic -> (encoding, one instruction as LLVM prints it), in the order of the formats."""
    words = [*_scalar(), *_vector(), *_memory()]
    code = b"".join(struct.pack(f"<{len(w)}I", *w) + struct.pack("<I", _NOP) * (4 - len(w))
                    for _, w in words)
    texts = {offset: text for offset, _, text in disassemble.rows(code, Target("gfx942"))}
    found: dict[str, tuple[str, str]] = {}
    for index, (encoding, _) in enumerate(words):
        text = texts.get(16 * index, ".long")
        if not text.startswith(".long"):
            found.setdefault(text.split()[0], (encoding, text))
    return found
