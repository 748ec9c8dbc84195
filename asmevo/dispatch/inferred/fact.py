"""One inferred fact and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Confidence(StrEnum):
    """``CONFIRMED``: emulated launches showed it. ``READ``: metadata, descriptor or code say it.
    ``ASSUMED``: nothing contradicts it, and a different value would be as good a launch."""

    CONFIRMED = "confirmed"
    READ = "read"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Fact:
    """``subject`` is a YAML key (``buffers.out.role``), ``value`` what it would be."""

    subject: str
    value: str
    confidence: Confidence
    reason: str

    def __str__(self) -> str:
        return f"{self.subject} = {self.value} ({self.confidence.value}: {self.reason})"
