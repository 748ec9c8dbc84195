"""Errors about instruction text."""

from __future__ import annotations

from collections.abc import Sequence

from asmevo.errors import AsmEvoError


class ParseError(AsmEvoError):
    """An instruction's text is not valid AMDGPU assembly, or uses something AsmEvo refuses."""


class UnknownInstructionError(ParseError):
    """The opcode table has no such mnemonic."""

    def __init__(self, mnemonic: str) -> None:
        super().__init__(f"unknown instruction '{mnemonic[:64]}'")
        self.mnemonic = mnemonic


class ControlFlowError(AsmEvoError):
    """The control flow of a kernel cannot be known from its instructions."""


class TargetError(AsmEvoError):
    """There are no tables for a processor."""

    def __init__(self, isa: str, known: Sequence[str]) -> None:
        super().__init__(f"processor '{isa[:32]}' is not modelled; known are {', '.join(known)}")
        self.isa = isa
