"""Where a dispatch lies under the ceilings of its machine, and which of them holds it down.

Every resource has a ceiling: operations of a class on the VALU or the matrix pipe, bytes at a level
of memory, LDS. Its utilisation is the time that its work takes at the ceiling over the time that
the dispatch took. A line that was found at one level has crossed the nearer ones too; bytes at
vL1D are those that lanes asked for, farther away those of whole lines, and at HBM also what is
written. All 64 lanes count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.profile.arithmetic import OperationClass, operations, peak
from asmevo.profile.errors import ProfileError
from asmevo.profile.machine import Machine
from asmevo.profile.pipes import TURN, Pipe, pipe_times
from asmevo.profile.profile import MemoryLevel, Profile, StallCause

_LINE = 128
_LEVELS = (MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.MALL, MemoryLevel.HBM)
_SIMDS = 4
# What a unit must reach of its ceiling to count as the limit; below, latency is what holds a kernel
# down. Customary in profilers' guidance (NVIDIA Nsight Compute, "Speed Of Light": 60 %).
LIMITING = 0.6


class Limit(StrEnum):
    """What holds a dispatch down."""

    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    ISSUE = "issue"
    MFMA = "MFMA"
    LDS = "LDS"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One resource: ``work`` of the whole dispatch and the device's ``rate`` per clk, in ``unit``.

    ``utilisation`` is the busy share of the resource; ``level`` belongs to bandwidth.
    """

    name: str
    limit: Limit
    unit: str
    work: float
    rate: float
    utilisation: float
    level: MemoryLevel | None = None


@dataclass(frozen=True, slots=True)
class Roofline:
    """Operations and bytes are those of the whole dispatch.

    ``intensity`` is operations per byte at each level that moved any; ``achieved`` and
    ``attainable`` are operations a second, the latter what the lowest roof above the dispatch's
    intensities allows. ``evidence`` says in words why ``limit`` was named.
    """

    dispatch: str
    machine: str
    clock_mhz: int
    cycles: int
    operations: Mapping[OperationClass, float]
    bytes: Mapping[MemoryLevel, float]
    lds_bytes: float
    intensity: Mapping[MemoryLevel, float]
    achieved: float
    attainable: float
    ceilings: tuple[Ceiling, ...]
    limit: Limit
    level: MemoryLevel | None
    evidence: tuple[str, ...]


def roofline(profile: Profile, program: Program, machine: Machine, *,
             workgroups: int | None = None) -> Roofline:
    """Place a profile that counts issues and bytes.

    Its totals are those of some compute units; with ``workgroups``, how many the launch has, they
    are scaled by the workgroups among them, else as if all units of ``machine`` did the same. The
    clock is the profile's, or the machine's where that is unknown. Raises ProfileError for a
    profile of another program, and for one without cycles or without issue counts.
    """
    if len(profile.instructions) != len(program):
        raise ProfileError(f"the profile of {profile.dispatch} does not belong to this program")
    if profile.cycles <= 0 or not any(i.issued for i in profile.instructions):
        raise ProfileError(f"the profile of {profile.dispatch} has no cycles or no issue counts, "
                           "which a roofline needs")
    if profile.source != "modelled":
        raise ProfileError(f"the profile of {profile.dispatch} is {profile.source}: its counts "
                           "are samples or weights, from which no roofline follows")
    return _Placement(profile, program, machine, workgroups).roofline()


def place(dispatch: str, machine: Machine, clock_mhz: int, cycles: int, *,
          operations: Mapping[OperationClass, float], moved: Mapping[MemoryLevel, float],
          lds_bytes: float, ceilings: Iterable[Ceiling],
          causes: Mapping[StallCause, int]) -> Roofline:
    """The roofline of a dispatch whose work and ceilings are known, and the limit they name."""
    ranked = tuple(sorted(ceilings, key=lambda c: -c.utilisation))
    best = ranked[0] if ranked and ranked[0].utilisation >= LIMITING else None
    roof = ranked[0].utilisation if ranked else 0.0
    total = sum(operations.values())
    achieved = total * clock_mhz * 1e6 / cycles
    return Roofline(
        dispatch, machine.name, clock_mhz, cycles, operations, moved, lds_bytes,
        intensity={level: total / count for level, count in moved.items() if count},
        achieved=achieved, attainable=achieved / roof if roof else 0.0, ceilings=ranked,
        limit=Limit.LATENCY if best is None else best.limit,
        level=None if best is None else best.level,
        evidence=_evidence(ranked, best is None, causes))


def _evidence(ceilings: Sequence[Ceiling], latency: bool,
              causes: Mapping[StallCause, int]) -> tuple[str, ...]:
    lines = [f"no resource reaches {LIMITING:.0%} of its ceiling"] if latency else []
    lines += [f"{c.name} used {c.utilisation:.1%}" for c in ceilings]
    stalled = sum(causes.values())
    if stalled:
        most = Counter(causes).most_common(4)
        lines.append("stalled cycles: " + ", ".join(
            f"{cause.value} {clk / stalled:.0%}" for cause, clk in most))
    return tuple(lines)


class _Placement:
    def __init__(self, profile: Profile, program: Program, machine: Machine,
                 workgroups: int | None) -> None:
        self.profile, self.program, self.machine = profile, program, machine
        units = len({wave.unit for wave in profile.waves}) or 1
        simulated = len({wave.workgroup for wave in profile.waves})
        if workgroups is not None and simulated:
            self.scale = workgroups / simulated
            active = min(workgroups, machine.compute_units)
        else:
            self.scale = machine.compute_units / units
            active = machine.compute_units
        # Unit-clk of the simulated units, and of all that the launch keeps busy.
        self.unit_clk = profile.cycles * units
        self.active = active
        self.operations: Counter[OperationClass] = Counter()
        self.pipes: Counter[Pipe] = Counter()
        self.lines: Counter[MemoryLevel] = Counter()
        self.lane_bytes = self.lds_bytes = 0
        for instruction, counts in zip(program.instructions, profile.instructions, strict=True):
            if not counts.issued:
                continue
            done = operations(instruction)
            if done:
                self.operations[done[0]] += counts.issued * done[1]
            for pipe, clk in pipe_times(instruction, program.isa).items():
                self.pipes[pipe] += counts.issued * clk
            memory = counts.memory
            if memory is None:
                continue
            if instruction.unit is Unit.LDS:
                self.lds_bytes += memory.bytes
                self.pipes[Pipe.LDS] += memory.conflicts
            elif instruction.unit is not Unit.SMEM:
                self.lane_bytes += memory.bytes
                self.lines.update(memory.lines)

    def roofline(self) -> Roofline:
        profile = self.profile
        clock = profile.clock_mhz or self.machine.clock_mhz
        moved = self._bytes()
        causes: Counter[StallCause] = Counter()
        for instruction in profile.instructions:
            causes.update(instruction.stalls)
        return place(
            profile.dispatch, self.machine, clock, profile.cycles,
            operations={c: n * self.scale for c, n in self.operations.items()}, moved=moved,
            lds_bytes=self.lds_bytes * self.scale,
            ceilings=[*self._bandwidths(moved, clock), *self._compute()], causes=causes)

    def _bytes(self) -> dict[MemoryLevel, float]:
        moved: dict[MemoryLevel, float] = {}
        for position, level in enumerate(_LEVELS):
            crossed = sum(self.lines[farther] for farther in _LEVELS[position:])
            count = self.lane_bytes if level is MemoryLevel.L1 else _LINE * crossed
            if level is MemoryLevel.HBM:
                count += _LINE * self.profile.written
            moved[level] = count * self.scale
        return moved

    def _bandwidths(self, moved: Mapping[MemoryLevel, float], clock: int) -> list[Ceiling]:
        cycles = self.profile.cycles
        found = []
        for level, count in moved.items():
            rate = self.machine.bytes_per_clk[level]
            if level is MemoryLevel.HBM and count:
                written = _LINE * self.profile.written * self.scale
                rate = count / ((count - written) / rate
                                + written / self.machine.hbm_write_bytes_per_clk)
            if level in (MemoryLevel.MALL, MemoryLevel.HBM):
                # Their clock is their own: at another core clock they move more or less in a clk.
                rate *= self.machine.clock_mhz / clock
            if level is MemoryLevel.L1:
                rate *= self.active / self.machine.compute_units
            if count:
                found.append(Ceiling(f"{level.value} bandwidth", Limit.BANDWIDTH, "B", count, rate,
                                     count / (rate * cycles), level))
        return found

    def _compute(self) -> list[Ceiling]:
        found = []
        for name, limit, pipe, pipes in (
                ("VALU", Limit.ISSUE, Pipe.VALU, _SIMDS), ("MFMA", Limit.MFMA, Pipe.MATRIX, _SIMDS),
                ("LDS", Limit.LDS, Pipe.LDS, _SIMDS // 2)):
            if self.pipes[pipe]:
                found.append(Ceiling(
                    f"{name} pipe", limit, "clk", self.pipes[pipe] * self.scale,
                    float(pipes * self.active),
                    self.pipes[pipe] / (self.unit_clk * pipes)))
        lived = sum(wave.end - wave.start for wave in self.profile.waves)
        issued = sum(i.issued for i in self.profile.instructions)
        if lived:
            # A wave has one turn in four clk whatever it issues.
            found.append(Ceiling("issue turns of waves", Limit.ISSUE, "turns", issued * self.scale,
                                 lived * self.scale / TURN / self.profile.cycles,
                                 min(issued * TURN / lived, 1.0)))
        for operation_class, count in self.operations.items():
            most = peak(operation_class, self.program.isa)
            if most is not None:
                limit = Limit.MFMA if operation_class.matrix else Limit.ISSUE
                found.append(Ceiling(
                    f"{operation_class} rate", limit, "op", count * self.scale,
                    most * self.active,
                    count / (most * self.unit_clk)))
        return found
