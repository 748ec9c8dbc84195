"""What a static check found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A missing wait or hazard distance between a producer and a consumer instruction.

    ``kind`` is a short stable name (``missing-vmcnt``, ``valu-sgpr-vmem``...). ``producer`` and
    ``consumer`` are instruction indices; their texts identify the pair across edits, which is how a
    candidate's *new* violations are told from those the original already has.
    """

    kind: str
    producer: int
    consumer: int
    producer_text: str
    consumer_text: str
    registers: int
    needed: int
    found: int

    @property
    def signature(self) -> tuple[str, str, str, int]:
        """Identity that survives edits elsewhere in the kernel."""
        return (self.kind, self.producer_text, self.consumer_text, self.registers)
