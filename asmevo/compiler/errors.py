"""What can go wrong when a kernel is compiled."""

from __future__ import annotations

from asmevo.errors import AsmEvoError


class CompileError(AsmEvoError):
    """A kernel cannot be fetched or compiled."""
