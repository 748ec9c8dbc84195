"""Errors about instruction text."""

from __future__ import annotations

from asmevo.errors import AsmEvoError


class ParseError(AsmEvoError):
    """An instruction's text is not valid gfx942 assembly, or uses something AsmEvo refuses."""


class UnknownInstructionError(ParseError):
    """The opcode table has no such mnemonic."""

    def __init__(self, mnemonic: str) -> None:
        super().__init__(f"unknown gfx942 instruction '{mnemonic[:64]}'")
        self.mnemonic = mnemonic


class ControlFlowError(AsmEvoError):
    """The control flow of a kernel cannot be known from its instructions."""
