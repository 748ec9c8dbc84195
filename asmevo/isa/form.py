"""How one operation uses its operands: the row type of the opcode tables."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from asmevo.isa.instruction import Unit


@dataclass(frozen=True, slots=True)
class Form:
    """What an operation does with each written operand, and what it touches implicitly.

    ``roles`` has one letter per operand in LLVM's order:

    ``w`` written, ``r`` read, ``x`` read and written, ``i`` immediate, ``t`` branch target.

    ``suffixed`` operations exist in several encodings and carry ``_e32``, ``_e64``, ``_dpp`` or
    ``_sdwa`` in their mnemonic. ``returning_roles`` replace ``roles`` when ``sc0`` (``glc`` on
    scalar memory and gfx90a) asks an atomic for the value it replaced, and ``lds_roles`` when
    ``lds`` sends a load to LDS.
    """

    unit: Unit
    roles: str
    reads: int = 0
    writes: int = 0
    suffixed: bool = False
    is_load: bool = False
    is_store: bool = False
    is_atomic: bool = False
    vmcnt: int = 0
    lgkmcnt: int = 0
    is_branch: bool = False
    is_conditional: bool = False
    ends_program: bool = False
    returning_roles: str | None = None
    lds_roles: str | None = None

    def roles_with(self, modifiers: Container[str]) -> str:
        """The roles of the operands under the modifiers that an instruction carries."""
        if self.lds_roles is not None and "lds" in modifiers:
            return self.lds_roles
        if self.returning_roles is not None and ("sc0" in modifiers or "glc" in modifiers):
            return self.returning_roles
        return self.roles
