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


class PullRefusal(StrEnum):
    """Why `asmevo.registry.pull.pull` refuses; stable, for deployment scripts."""

    NONE = "no-replacement"
    AMBIGUOUS_KERNEL = "ambiguous-kernel"
    WITHDRAWN = "withdrawn"
    WEAKER_GATES = "weaker-gates"
    MODELLED_ONLY = "modelled-only"
    EVIDENCE_INCOMPLETE = "evidence-incomplete"
    ISA_MISMATCH = "isa-mismatch"
    BLOB_CORRUPT = "blob-corrupt"


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
