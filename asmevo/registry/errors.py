"""Errors of the registry."""

from __future__ import annotations

import errno
from enum import StrEnum
from pathlib import Path

from asmevo.errors import AsmEvoError


class RegistryError(AsmEvoError):
    """The registry cannot be opened, read or written, or refuses what it was given."""


class RegistryMissingError(RegistryError):
    """There is no registry yet where one is to be read."""


class BlobError(RegistryError):
    """A blob cannot be read or written."""


class BlobMissingError(BlobError):
    """No blob of that hash is stored."""


class BlobCorruptError(BlobError):
    """A stored blob does not decompress to the content that its name promises."""


class KeyFileError(RegistryError):
    """A file does not hold the key that it should, or others can get at it."""


class TrustError(RegistryError):
    """A trust list cannot be read, is malformed, or lies where it says nothing."""


class StatementFault(StrEnum):
    """What is wrong with the statement of a replacement."""

    MISSING = "missing"
    DAMAGED = "damaged"
    MISMATCH = "mismatch"


class StatementError(RegistryError):
    """A replacement has no statement, or one that its rows do not agree with."""

    def __init__(self, fault: StatementFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class PullRefusal(StrEnum):
    """Why `asmevo.registry.pull` refuses; stable, for deployment scripts.

    In the order of the checks. Of several replacements that are refused the code is that of the one
    that came furthest.
    """

    NONE = "no-replacement"
    AMBIGUOUS_KERNEL = "ambiguous-kernel"
    STATEMENT_MISMATCH = "statement-mismatch"
    SIGNATURE_INVALID = "signature-invalid"
    NO_STATEMENT = "no-statement"
    UNSIGNED = "unsigned"
    UNTRUSTED = "untrusted-signature"
    WITHDRAWN = "withdrawn"
    NOT_CONFIRMED = "not-confirmed"
    EVIDENCE_INCOMPLETE = "evidence-incomplete"
    WEAKER_GATES = "weaker-gates"
    MODELLED_ONLY = "modelled-only"
    BLOB_CORRUPT = "blob-corrupt"
    ISA_MISMATCH = "isa-mismatch"
    INTERFACE_MISMATCH = "interface-mismatch"

    @property
    def is_damage(self) -> bool:
        """Whether somebody or something changed the registry, so that nothing is handed out."""
        return self in _DAMAGE


_DAMAGE = frozenset({PullRefusal.STATEMENT_MISMATCH, PullRefusal.SIGNATURE_INVALID,
                     PullRefusal.BLOB_CORRUPT})


class PullError(RegistryError):
    """A replacement is not handed out; ``code`` says why."""

    def __init__(self, code: PullRefusal, message: str) -> None:
        super().__init__(message)
        self.code = code


_OS_REASONS = {
    errno.EACCES: "permission denied",
    errno.EPERM: "operation not permitted",
    errno.EROFS: "it is on a read-only file system",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would exceed the file size limit",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EEXIST: "a file of that name is in the way",
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "it is a folder",
}


def os_reason(error: OSError) -> str:
    """The cause of an `OSError` in the words of a sentence, without its path."""
    return _OS_REASONS.get(error.errno or 0, error.strerror or type(error).__name__)


def cannot(action: str, path: Path, error: OSError) -> RegistryError:
    """The error for an operating-system failure, e.g. ``cannot write /x: the disk is full``."""
    return RegistryError(f"cannot {action} {path}: {os_reason(error)}")
