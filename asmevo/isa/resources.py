"""Registers a kernel uses, as its descriptor must declare them."""

from __future__ import annotations

from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import AGPR0, ALL_AGPR_MASK, ALL_VGPR_MASK, SGPR_LIMIT, VGPR0


def register_use(program: Program) -> tuple[int, int, int]:
    """Highest used VGPR, AGPR and SGPR number plus one, over all instructions.

    SGPRs are the general ones only: VCC, FLAT_SCRATCH and XNACK_MASK are reserved separately by the
    descriptor. Registers that only VGPR indexing or a word that LLVM cannot decode reaches are not
    seen.
    """
    used = 0
    for instruction in program.instructions:
        if instruction.unit is Unit.OPAQUE:
            continue
        used |= instruction.reads | instruction.writes
    return (
        ((used & ALL_VGPR_MASK) >> VGPR0).bit_length(),
        ((used & ALL_AGPR_MASK) >> AGPR0).bit_length(),
        (used & (1 << SGPR_LIMIT) - 1).bit_length(),
    )
