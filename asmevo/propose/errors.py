"""What can go wrong before a proposer proposes anything."""

from __future__ import annotations

from asmevo.errors import AsmEvoError


class ProposerError(AsmEvoError):
    """A proposer's configuration makes no sense."""
