"""Registers that hold nothing anyone needs, for edits that want some of their own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from asmevo.codeobject.occupancy import COMPUTE_UNITS, ComputeUnit
from asmevo.isa.cfg import Cfg
from asmevo.isa.effects import Effects, State, effects, machine_states
from asmevo.isa.program import Program
from asmevo.isa.registers import (
    AGPR0,
    ALL_AGPR_MASK,
    ALL_VGPR_MASK,
    SGPR_LIMIT,
    VCC_LO,
    VCC_MASK,
    VGPR0,
    VGPR_LIMIT,
    mask,
    name,
)
from asmevo.isa.resources import register_use
from asmevo.propose.lane_liveness import LaneLiveness

_SCALARS = (1 << SGPR_LIMIT) - 1
# Behind the numbered SGPRs a wave of these processors always has VCC, XNACK_MASK and FLAT_SCRATCH
# (LLVM AMDGPUBaseInfo, getNumExtraSGPRs).
_EXTRA_SGPRS = 6
_ACCUM_GRANULE = 4


class FreeRegisters:
    """Dead registers over ranges of instructions, among those that cost no occupancy.

    ``vgpr_limit`` and ``sgpr_limit`` are one more than the highest number that an edit may use:
    the most at which as many waves fit a SIMD as now, or ``steps`` fewer. Vector registers are
    looked at lane by lane (see `LaneLiveness`): an instruction placed inside a free range, under
    the EXEC that holds there, may overwrite them.
    """

    def __init__(
        self, program: Program, *, cfg: Cfg | None = None, facts: tuple[Effects, ...] | None = None,
        states: tuple[State, ...] | None = None, steps: int = 0,
    ) -> None:
        self._program = program
        self._cfg = cfg or Cfg.of(program)
        self._states = states if states is not None else machine_states(program, self._cfg)
        self._facts = facts if facts is not None else effects(program, self._cfg)
        unit = COMPUTE_UNITS.get(program.isa, COMPUTE_UNITS["gfx942"])
        vgprs, agprs, sgprs = register_use(program)
        self.vgpr_limit = _vgpr_limit(unit, vgprs, agprs, steps)
        self.sgpr_limit = _sgpr_limit(unit, sgprs, steps)
        self._allowed = (
            mask(VGPR0, self.vgpr_limit) | mask(AGPR0, agprs) | mask(0, self.sgpr_limit)
            | VCC_MASK)

    @cached_property
    def lanes(self) -> LaneLiveness:
        """What each lane may still read."""
        return LaneLiveness.of(self._program, self._cfg, self._facts, self._states)

    def during(self, indices: Iterable[int]) -> int:
        """Registers, as a mask, that none of these instructions touches and that hold nothing
        needed in front of, between or behind them.

        They may be written at the first and read at the last of a range, or anywhere in a loop all
        of whose instructions are given.
        """
        busy = 0
        lanes, facts = self.lanes, self._facts
        for index in indices:
            fact = facts[index]
            busy |= fact.reads | fact.writes | lanes.before[index] | lanes.after[index]
        return self._allowed & ~busy

    def within(self, start: int, stop: int) -> int:
        """Free for a value written in front of ``start`` and last read by ``stop`` - 1 at most, in
        straight-line code; an instruction at ``stop`` may use it for something else.
        """
        busy = self.lanes.before[start]
        for index in range(start, stop):
            fact = self._facts[index]
            busy |= fact.reads | fact.writes
            if index + 1 < stop:
                busy |= self.lanes.after[index]
        return self._allowed & ~busy

    def untouched(self) -> int:
        """Registers that no instruction of the program names."""
        used = 0
        for fact in self._facts:
            used |= fact.reads | fact.writes
        return self._allowed & ~used


def vector(free: int, count: int = 1, align: int = 1) -> int | None:
    """The lowest run of ``count`` VGPRs in a mask, as a register number, aligned as asked for."""
    return _run((free & ALL_VGPR_MASK) >> VGPR0, VGPR0, count, align)


def accumulator(free: int, count: int = 1, align: int = 1) -> int | None:
    """The lowest run of ``count`` AGPRs in a mask."""
    return _run((free & ALL_AGPR_MASK) >> AGPR0, AGPR0, count, align)


def scalar(free: int, count: int = 1) -> int | None:
    """The lowest run of ``count`` SGPRs in a mask, aligned as operands of that size must be."""
    align = 1 if count == 1 else 2 if count == 2 else 4
    return _run(free & _SCALARS, 0, count, align)


def text(register: int, count: int = 1) -> str:
    """The assembler's name of a run of registers: ``v[4:5]``, ``s7``, ``vcc``."""
    if count == 1:
        return name(register)
    if register == VCC_LO:
        return "vcc"
    first = name(register)
    return f"{first[0]}[{first[1:]}:{int(first[1:]) + count - 1}]"


def _run(bits: int, base: int, count: int, align: int) -> int | None:
    for _ in range(count - 1):
        bits &= (bits >> 1)
        count -= 1
    while bits:
        low = (bits & -bits).bit_length() - 1
        if low % align == 0:
            return base + low
        bits &= bits - 1
    return None


def _vgpr_limit(unit: ComputeUnit, vgprs: int, agprs: int, steps: int) -> int:
    """With AGPRs behind them, VGPRs grow by moving the AGPRs up."""
    start = -(-vgprs // _ACCUM_GRANULE) * _ACCUM_GRANULE if agprs else vgprs
    granule = unit.vgpr_granule
    allocated = -(-max(start + agprs, 1) // granule) * granule
    waves = max(min(unit.vgprs // allocated, unit.wave_slots) - steps, 1)
    largest = unit.vgprs // waves // granule * granule - agprs
    if agprs:
        largest = largest // _ACCUM_GRANULE * _ACCUM_GRANULE
    return max(min(largest, VGPR_LIMIT), vgprs)


def _sgpr_limit(unit: ComputeUnit, sgprs: int, steps: int) -> int:
    granule = unit.sgpr_granule
    allocated = -(-(sgprs + _EXTRA_SGPRS) // granule) * granule
    waves = max(min(unit.sgprs // allocated, unit.wave_slots) - steps, 1)
    largest = unit.sgprs // waves // granule * granule - _EXTRA_SGPRS
    return max(min(largest, SGPR_LIMIT), sgprs)
