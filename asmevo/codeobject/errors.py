"""What can be wrong with a code object, its text or the tools that make one from the other."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.errors import AsmEvoError


class CodeObjectError(AsmEvoError):
    """The bytes are not a code object that AsmEvo can take apart; the sentence says why."""


class SourceError(AsmEvoError):
    """A code object could not be read from where it is said to be."""


class ToolchainError(AsmEvoError):
    """The assembler or linker is missing, crashed, ran out of time or made no usable output."""


class RebuildError(AsmEvoError):
    """An edited assembly is not plain instructions, or would change the kernel's interface."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message of the assembler; ``line`` and ``column`` count from 1, 0 means unknown."""

    line: int
    column: int
    severity: str
    message: str


class AssemblerError(AsmEvoError):
    """The assembler or linker rejected the text.

    ``line``, ``column`` and ``detail`` are those of the first error; ``diagnostics`` has all of
    them, and ``source`` the offending line of the input.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...], source: str = "") -> None:
        first = diagnostics[0]
        where = f"line {first.line}, column {first.column}: " if first.line else ""
        shown = f" in '{source.strip()}'" if source.strip() else ""
        super().__init__(f"{where}{first.message}{shown}")
        self.diagnostics = diagnostics
        self.line = first.line
        self.column = first.column
        self.detail = first.message
        self.source = source

    def __reduce__(self) -> tuple[type[AssemblerError], tuple[tuple[Diagnostic, ...], str]]:
        return (AssemblerError, (self.diagnostics, self.source))
