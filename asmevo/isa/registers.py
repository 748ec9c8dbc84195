"""Register numbering and register sets.

A register set is an ``int`` used as a bit mask: bit *n* stands for register number *n* of one
unified numbering. Masks make liveness and def-use over a whole kernel a handful of integer
operations. Scalar numbers are the hardware's own operand encodings (CDNA3 ISA, "Scalar Operands").
"""

from __future__ import annotations

from collections.abc import Iterator

FLAT_SCRATCH_LO = 102
XNACK_MASK_LO = 104
VCC_LO = 106
VCC_HI = 107
TTMP0 = 108
M0 = 124
EXEC_LO = 126
EXEC_HI = 127
SCC = 128
MODE = 129
VGPR0 = 256
AGPR0 = 512
REGISTER_COUNT = 768

SGPR_LIMIT = 102
VGPR_LIMIT = 256
AGPR_LIMIT = 256

VCC_MASK = 0b11 << VCC_LO
EXEC_MASK = 0b11 << EXEC_LO
SCC_MASK = 1 << SCC
MODE_MASK = 1 << MODE
M0_MASK = 1 << M0
ALL_VGPR_MASK = ((1 << VGPR_LIMIT) - 1) << VGPR0
ALL_AGPR_MASK = ((1 << AGPR_LIMIT) - 1) << AGPR0
# Scalar registers, SCC and MODE, VGPRs and AGPRs; nothing has the numbers between.
EVERYTHING = (1 << MODE + 1) - 1 | ALL_VGPR_MASK | ALL_AGPR_MASK

_SPECIAL_NAMES = {
    102: "flat_scratch_lo", 103: "flat_scratch_hi", 104: "xnack_mask_lo", 105: "xnack_mask_hi",
    VCC_LO: "vcc_lo", VCC_HI: "vcc_hi", M0: "m0", EXEC_LO: "exec_lo", EXEC_HI: "exec_hi",
    SCC: "scc", MODE: "mode",
}


def mask(first: int, count: int = 1) -> int:
    """The set of ``count`` consecutive registers that starts at register number ``first``."""
    return ((1 << count) - 1) << first


def members(registers: int) -> Iterator[int]:
    """Register numbers in a set, ascending."""
    while registers:
        low = registers & -registers
        yield low.bit_length() - 1
        registers ^= low


def name(register: int) -> str:
    """The assembler's name of a register number: ``s5``, ``v17``, ``a0``, ``vcc_lo``, ``scc``."""
    if register in _SPECIAL_NAMES:
        return _SPECIAL_NAMES[register]
    if register >= AGPR0:
        return f"a{register - AGPR0}"
    if register >= VGPR0:
        return f"v{register - VGPR0}"
    if TTMP0 <= register < M0:
        return f"ttmp{register - TTMP0}"
    return f"s{register}"


def names(registers: int) -> str:
    """A comma-separated list of the names in a set."""
    return ", ".join(name(r) for r in members(registers))
