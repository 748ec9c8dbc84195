"""Errors of the gates."""

from __future__ import annotations

from asmevo.errors import AsmEvoError


class OracleError(AsmEvoError):
    """The original cannot serve as an oracle: it disagrees with itself or with a capture of it."""
