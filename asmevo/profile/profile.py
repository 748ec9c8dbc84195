"""Where the time of a dispatch goes, per instruction."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class StallCause(StrEnum):
    """Why a wave could not issue."""

    VMCNT = "vmcnt"
    LGKMCNT = "lgkmcnt"
    DEPENDENCY = "dependency"
    UNIT_BUSY = "unit-busy"
    BARRIER = "barrier"
    FETCH = "fetch"
    NOP = "nop"


@dataclass(frozen=True, slots=True)
class InstructionProfile:
    """Totals over all simulated waves: times issued, and cycles waited by cause."""

    issued: int
    stalls: dict[StallCause, int] = field(default_factory=dict)

    @property
    def stalled(self) -> int:
        return sum(self.stalls.values())


@dataclass(frozen=True, slots=True)
class Profile:
    """Per-instruction profile of one dispatch; ``source`` says measured or modelled.

    ``instructions[i]`` belongs to instruction *i* of the kernel's `Program`.
    """

    dispatch: str
    source: str
    device: str
    cycles: int
    instructions: tuple[InstructionProfile, ...]
