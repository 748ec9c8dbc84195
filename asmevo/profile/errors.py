"""Errors of profiles and what is made from them."""

from __future__ import annotations

from asmevo.errors import AsmEvoError


class ProfileError(AsmEvoError):
    """A profile cannot be read, does not belong to the program, or a setting makes no sense."""
