"""What the cycle model says of a launch, and the profile that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asmevo.device.device import TimingSource
from asmevo.isa.instruction import Instruction
from asmevo.isa.program import Program
from asmevo.profile.profile import (
    Event,
    InstructionProfile,
    MemoryLevel,
    MemoryProfile,
    Profile,
    StallCause,
    WaveProfile,
)

# The rows of the stall matrix, in the order of the C++ enumeration.
STALL_CAUSES = (StallCause.VMCNT, StallCause.LGKMCNT, StallCause.DEPENDENCY, StallCause.UNIT_BUSY,
                StallCause.BARRIER, StallCause.FETCH, StallCause.NOP, StallCause.OCCUPANCY)
# The rows of the matrix of lines, in the order of the C++ enumeration.
MEMORY_LEVELS = (MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.MALL, MemoryLevel.HBM)
_NO_CAUSE = 0xFF
_WAVE_COLUMNS = 8  # before the stalls by cause

Counts = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class TimingResult:
    """What the model says of one launch.

    ``cycles`` from the first wave's launch to the last completion, stores included;
    ``microseconds`` with the cost of the launch itself. ``issued[i]`` how often instruction *i*
    issued on the simulated compute units, ``stalls[c, i]`` clk that waves stood at it because of
    ``STALL_CAUSES[c]``. ``matrix_utilisation`` is the busy share of the matrix pipes of the
    simulated units. ``scope`` says what was simulated.
    """

    cycles: int
    microseconds: float
    clock_mhz: int
    matrix_utilisation: float
    scope: str
    core: Any

    @property
    def issued(self) -> Counts:
        return np.asarray(self.core.issued)

    @property
    def stalls(self) -> Counts:
        return np.asarray(self.core.stalls)

    def profile(self, program: Program, dispatch: str, device: str) -> Profile:
        """The same as a `Profile` of ``dispatch`` on ``device``, labelled modelled."""
        stalls, lines = self.stalls.T, np.asarray(self.core.lines).T
        instructions = tuple(
            InstructionProfile(int(count), _by_cause(column),
                               _memory(instruction, touched, int(moved), int(conflicts)))
            for instruction, count, column, touched, moved, conflicts in zip(
                program.instructions, self.issued, stalls, lines, self.core.bytes,
                self.core.conflicts, strict=True))
        waves = np.asarray(self.core.waves)
        timeline = tuple(_events(self.core.events(index)) for index in range(len(waves)))
        scope = self.scope
        if not self.core.timeline_complete:
            scope += "; the timeline ends early, at the most events it may have"
        return Profile(
            dispatch, TimingSource.MODELLED.value, device, self.cycles, instructions,
            clock_mhz=self.clock_mhz, microseconds=self.microseconds,
            written=int(self.core.written), waves=tuple(_wave(row) for row in waves),
            timeline=timeline if any(timeline) else (), scope=scope)


def _by_cause(column: Counts) -> dict[StallCause, int]:
    return {cause: int(clk) for cause, clk in zip(STALL_CAUSES, column, strict=True) if clk}


def _memory(instruction: Instruction, lines: Counts, moved: int,
            conflicts: int) -> MemoryProfile | None:
    if not instruction.accesses_memory:
        return None
    found = {level: int(count) for level, count in zip(MEMORY_LEVELS, lines, strict=True) if count}
    return MemoryProfile(moved, found, conflicts)


def _wave(row: Counts) -> WaveProfile:
    unit, simd, slot, workgroup, wave, start, end, issued = map(int, row[:_WAVE_COLUMNS])
    return WaveProfile(unit, simd, slot, workgroup, wave, start, end, issued,
                       _by_cause(row[_WAVE_COLUMNS:]))


def _events(rows: Counts) -> tuple[Event, ...]:
    return tuple(
        Event(instruction, ready, held, issue, resume,
              None if cause == _NO_CAUSE else STALL_CAUSES[cause],
              None if after == _NO_CAUSE else STALL_CAUSES[after])
        for instruction, ready, held, issue, resume, cause, after in rows.tolist())
