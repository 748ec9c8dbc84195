"""What can be wrong with a file that carries code objects."""

from __future__ import annotations

from asmevo.codeobject.errors import SourceError


class BundleError(SourceError):
    """A container of code objects is damaged, or has a form that AsmEvo does not read."""


class ReplacementError(BundleError):
    """A replacement does not fit where the original was, or is not for the same processor."""
