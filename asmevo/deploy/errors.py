"""Why something is not deployed, or not taken back."""

from __future__ import annotations

from enum import StrEnum

from asmevo.errors import AsmEvoError

_LONGEST = 300


class DeployRefusal(StrEnum):
    """Stable codes for deployment scripts."""

    NOT_FOUND = "original-not-found"
    CHANGED = "changed-since"
    FOREIGN = "foreign-change"
    ARCHITECTURE = "architecture-mismatch"
    INTERFACE = "interface-mismatch"
    LDS = "lds-mismatch"
    METADATA = "metadata-mismatch"
    INCOMPLETE = "cache-entry-incomplete"
    OUTSIDE = "leads-outside"
    BUSY = "being-written"
    LOCKED = "locked"
    READ_ONLY = "read-only"
    CONTAINER = "container"
    BACKUP = "backup-damaged"
    MANIFEST = "manifest-damaged"
    DESTINATION = "destination-exists"
    UNREADABLE = "unreadable"
    UNWRITABLE = "unwritable"

    @property
    def is_failure(self) -> bool:
        """Whether the operating system failed, rather than something spoke against it."""
        return self in (DeployRefusal.UNREADABLE, DeployRefusal.UNWRITABLE)


class DeployError(AsmEvoError):
    """A tree is left as it is; ``code`` says why."""

    def __init__(self, code: DeployRefusal, message: str) -> None:
        super().__init__(message)
        self.code = code


def shown(name: object) -> str:
    """A file name for a sentence: names found in a tree may hold line feeds or escape codes."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
                   for c in str(name))
    return f"'{text if len(text) <= _LONGEST else text[:_LONGEST] + '...'}'"
