"""What `verify` finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingCode(StrEnum):
    """What is wrong; stable, for scripts."""

    DATABASE = "database-damaged"
    SCHEMA = "schema-mismatch"
    ROW_UNREADABLE = "row-unreadable"
    ROW_ALTERED = "row-altered"
    REFERENCE = "reference-missing"
    ROWS_DISAGREE = "rows-disagree"
    EVENT_MISSING = "event-missing"
    VERDICT_MISSING = "verdict-missing"
    BLOB_MISSING = "blob-missing"
    BLOB_CORRUPT = "blob-corrupt"
    BLOB_UNREADABLE = "blob-unreadable"
    CONTENT_MISMATCH = "content-mismatch"
    STATEMENT_MISSING = "statement-missing"
    STATEMENT_MISMATCH = "statement-mismatch"
    EVIDENCE_INCOMPLETE = "evidence-incomplete"
    SIGNATURE_INVALID = "signature-invalid"
    UNSIGNED = "unsigned"
    UNTRUSTED = "untrusted-signature"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong: with what, and a sentence about it."""

    code: FindingCode
    subject: str
    reason: str


def shown(value: object) -> str:
    """A value of a row in a subject: bounded, and on one line."""
    return "".join(c if c.isprintable() else "?" for c in str(value)[:80])
