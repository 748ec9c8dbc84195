"""Where the time of a dispatch goes: per instruction, per wave, and clock by clock."""

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
    # The wave existed but had no slot yet: registers, LDS or wave slots were taken.
    OCCUPANCY = "occupancy"
    # A profiler saw the wave stand there and does not say why.
    OTHER = "other"


class MemoryLevel(StrEnum):
    """Where a line of 128 bytes was found."""

    L1 = "l1"  # vL1D, or sL1D of a scalar load
    L2 = "l2"
    MALL = "mall"
    HBM = "hbm"


@dataclass(frozen=True, slots=True)
class MemoryProfile:
    """Totals of one memory instruction over all simulated waves.

    ``bytes`` that active lanes moved; ``lines`` how many of each level the instruction touched
    (empty for LDS and where a profiler cannot tell); ``conflicts`` clk that bank conflicts added to
    an LDS access without any.
    """

    bytes: int
    lines: dict[MemoryLevel, int] = field(default_factory=dict)
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class InstructionProfile:
    """Totals over all simulated waves: times issued, and cycles waited by cause."""

    issued: int
    stalls: dict[StallCause, int] = field(default_factory=dict)
    memory: MemoryProfile | None = None

    @property
    def stalled(self) -> int:
        return sum(self.stalls.values())


@dataclass(frozen=True, slots=True)
class WaveProfile:
    """One wave: where it ran, from when to when (clk from the launch), and what it waited for.

    ``unit`` numbers the simulated compute units from 0; ``simd`` and ``slot`` are the wave's place
    on it, ``workgroup`` the linear workgroup id and ``wave`` the wave within it.
    """

    unit: int
    simd: int
    slot: int
    workgroup: int
    wave: int
    start: int
    end: int
    issued: int
    stalls: dict[StallCause, int] = field(default_factory=dict)

    @property
    def stalled(self) -> int:
        return sum(self.stalls.values())


@dataclass(frozen=True, slots=True)
class Event:
    """One instruction of a wave, in clk from the launch.

    From ``ready`` on it could have issued were nothing in its way; it waited for ``cause`` until
    ``held``, then for its unit until it issued at ``issue``, in a turn of 4 clk. The wave could go
    on at ``resume``; what it waited for after its turn is ``after`` (a barrier, wait states, the
    fetch behind a branch).
    """

    instruction: int
    ready: int
    held: int
    issue: int
    resume: int
    cause: StallCause | None
    after: StallCause | None


@dataclass(frozen=True, slots=True)
class Profile:
    """Profile of one dispatch; ``source`` says measured, modelled or static.

    ``instructions[i]`` belongs to instruction *i* of the kernel's `Program`. ``cycles`` of the
    whole dispatch at ``clock_mhz`` (0: unknown). ``waves`` and ``timeline`` (events of
    ``waves[i]``) are empty where the source does not give them. ``microseconds`` is what timing the
    dispatch gives, the cost of the launch included (0: unknown), ``written`` the lines that leave
    for HBM. ``scope`` states in words which
    part of the launch the totals cover and how the rest was accounted for.
    """

    dispatch: str
    source: str
    device: str
    cycles: int
    instructions: tuple[InstructionProfile, ...]
    clock_mhz: int = 0
    waves: tuple[WaveProfile, ...] = ()
    timeline: tuple[tuple[Event, ...], ...] = ()
    scope: str = ""
    microseconds: float = 0.0
    written: int = 0
