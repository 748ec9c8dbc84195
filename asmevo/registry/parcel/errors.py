"""Why a bundle file, or what is in it, is not taken."""

from __future__ import annotations

from enum import StrEnum

from asmevo.registry.errors import RegistryError


class ParcelFault(StrEnum):
    """What is wrong; stable, for scripts."""

    NOTHING = "nothing-selected"
    NOT_A_BUNDLE = "not-a-bundle"
    VERSION = "other-version"
    TRUNCATED = "truncated"
    DAMAGED = "damaged"
    TOO_LARGE = "too-large"
    SIGNATURE_INVALID = "signature-invalid"
    UNSIGNED = "unsigned"
    UNTRUSTED = "untrusted-signature"
    UNSOUND = "unsound"
    CONFLICT = "conflict"


class ParcelError(RegistryError):
    """Replacements are not exported or imported; ``code`` says why."""

    def __init__(self, code: ParcelFault, message: str) -> None:
        super().__init__(message)
        self.code = code
