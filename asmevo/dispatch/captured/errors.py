"""Errors of captures."""

from __future__ import annotations

from asmevo.errors import AsmEvoError


class CaptureError(AsmEvoError):
    """A capture cannot be read, written or replayed."""
