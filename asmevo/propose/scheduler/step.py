"""What one instruction costs and needs, looked up once for all orders that are tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from asmevo.isa.access_width import access_bytes
from asmevo.isa.cfg import Cfg
from asmevo.isa.hazard_rules import HazardFacts, hazard_facts
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.matrix_timing import MatrixClass, matrix_class, passes
from asmevo.isa.program import Program
from asmevo.isa.targets import model
from asmevo.profile.profile import MemoryLevel, Profile, StallCause
from asmevo.propose.scheduler.machine import TURN, MachineTimes
from asmevo.propose.scheduler.observed import observed_latencies
from asmevo.propose.scheduler.order_constraints import touches_memory

_WAVE = 64
_PASS = 4
_QUARTER_RATE = frozenset({"v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u64_u32",
                           "v_mad_i64_i32"})
_WHOLE = frozenset({"v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"})
# A level that fewer of an access's lines than this come from does not decide its latency.
_SHARE = 0.04


@dataclass(frozen=True, slots=True)
class Step:
    """``alu`` and ``matrix`` are clk of the vector ALU and of the matrix pipe, ``whole`` that the
    operation needs both. ``vm``, ``lds`` and ``scalar`` say which counter counts it and in which
    order; ``pipe`` are clk of its memory pipe and ``latency`` those until it is done, without them.
    ``extra`` are clk that it takes besides its turn, ``memory`` says that it reads or writes
    memory.
    A ``region`` counts as one step: ``inner`` are its memory operations, each of which may or may
    not be issued. ``unseen`` are registers used by code that a branch may lead to and that no
    profile has seen executed: no wait is put there. ``touched`` are the registers that it reads or
    writes, ``produced`` those for which it may be too close to what follows, ``reach`` wait states
    behind it at most.
    """

    index: int
    size: int
    reads: int
    writes: int
    registers: int
    alu: int
    matrix: int
    whole: bool
    vm: bool
    lds: bool
    scalar: bool
    weight: int
    publishes: bool
    load: bool
    barrier: bool
    pipe: int
    latency: int
    extra: int
    facts: HazardFacts
    inner: tuple[Step, ...] = ()
    region: bool = False
    unseen: int = 0
    memory: bool = False
    touched: int = field(init=False)
    produced: int = field(init=False)
    reach: int = field(init=False)

    def __post_init__(self) -> None:
        produced = 0
        for _, registers, _ in self.facts.produced:
            produced |= registers
        # What is forwarded needs two wait states at most, see `forwarded_states`.
        reach = max((max(needed, 2) for _, _, needed in self.facts.produced), default=0)
        object.__setattr__(self, "touched", self.reads | self.writes)
        object.__setattr__(self, "produced", produced)
        object.__setattr__(self, "reach", reach)


class Steps:
    """The steps of a program's instructions; ``distance`` scales vector memory's latency.

    ``paths`` are instructions in the order of execution, for what the profiles tell of latencies.
    """

    def __init__(self, program: Program, profiles: Sequence[Profile], machine: MachineTimes,
                 distance: float = 1.0, paths: Iterable[Sequence[int]] = ()) -> None:
        self._distance = distance
        self.program = program
        self._profiles = profiles
        self._machine = machine
        self._isa = model(program.isa)
        self._cfg = Cfg.of(program)
        self._known: dict[int, Step] = {}
        self._observed_latency = observed_latencies(program, profiles, paths)
        self._vmem_sharing, self._lds_sharing = _sharing(profiles)

    def __getitem__(self, index: int) -> Step:
        if index not in self._known:
            self._known[index] = self._step(index)
        return self._known[index]

    def _step(self, index: int) -> Step:
        program, machine = self.program, self._machine
        i = program.instructions[index]
        alu = matrix = pipe = latency = extra = 0
        whole = False
        if i.unit is Unit.MFMA:
            matrix = _PASS * passes(i, self._isa)
            xdl = matrix_class(i.op, self._isa) is MatrixClass.XDL
            alu, whole = (min(TURN, matrix) if xdl else matrix), True
        elif i.unit is Unit.TRANS or i.op in _QUARTER_RATE:
            alu = machine.quarter
        elif i.unit is Unit.VALU:
            alu, whole = TURN, i.op in _WHOLE
        if i.accesses_memory and i.unit in (Unit.VMEM, Unit.FLAT):
            pipe = max(_WAVE * (access_bytes(i) or 4) // machine.memory_rate, TURN)
            pipe = max(pipe, self._lines(index) * machine.line) * self._vmem_sharing
            latency = int(self._distance * self._latency(index, i))
        elif (i.accesses_memory and i.unit is Unit.LDS) or i.unit is Unit.LDS:
            pipe = max(_WAVE * (access_bytes(i) or 4) // machine.lds_rate, TURN)
            pipe = (pipe + self._conflicts(index)
                    + machine.lds_store * (i.is_store or i.is_atomic)) * self._lds_sharing
            latency = machine.lds
        elif i.lgkmcnt:
            latency = machine.scalar
        if i.is_branch:
            extra = (machine.branch_not_taken if i.is_conditional else machine.branch_taken) - TURN
        lds = i.unit is Unit.LDS and bool(i.lgkmcnt)
        return Step(
            index, program.offsets[index + 1] - program.offsets[index], i.reads, i.writes,
            i.writes if i.vmcnt or i.lgkmcnt else 0, alu, matrix, whole, bool(i.vmcnt), lds,
            bool(i.lgkmcnt) and not lds, i.lgkmcnt,
            i.is_store or i.is_atomic or "_lds_" in i.op or i.modifier("lds") is not None,
            i.is_load and bool(i.writes), i.unit is Unit.BARRIER, pipe, latency, extra,
            hazard_facts(i.text, self._isa), unseen=self.unseen((index,)) if i.is_branch else 0,
            memory=touches_memory(i))

    def region(self, indices: Sequence[int]) -> Step:
        """A branch and what lies between it and the place where its ways meet, as one step."""
        reads = writes = size = 0
        for index in indices:
            step = self[index]
            reads |= step.reads
            writes |= step.writes
            size += step.size
        steps = [self[i] for i in indices]
        return Step(
            indices[0], size, reads, writes, 0, 0, 0, False, False, False, False, 0, False, False,
            any(s.barrier for s in steps), 0, 0, self._observed(indices), HazardFacts((), (), 0),
            tuple(s for s in steps if s.vm or s.lds or s.scalar), True,
            self.unseen(indices))

    def unseen(self, indices: Sequence[int]) -> int:
        """What is used by code that branches among some instructions may lead to, as far as it was
        never executed."""
        cfg = self._cfg
        found = 0
        pending = [cfg.block_of[i] for i in indices]
        pending += [s for b in pending for s in cfg.blocks[b].successors
                    if self.program.instructions[cfg.blocks[b].end - 1].is_branch]
        done: set[int] = set()
        while pending:
            number = pending.pop()
            block = cfg.blocks[number]
            if number in done or self.executed(block.start):
                continue
            done.add(number)
            for index in range(block.start, block.end):
                i = self.program.instructions[index]
                found |= i.reads | i.writes
            pending += block.successors
        return found

    def executed(self, index: int) -> bool:
        """Whether a profile has seen an instruction executed, or there is none to tell."""
        return not self._profiles or any(p.instructions[index].issued for p in self._profiles)

    def _observed(self, indices: Sequence[int]) -> int:
        """Clk of one pass through a region as profiled, waits for memory apart."""
        clk = passes_ = 0
        for profile in self._profiles:
            passes_ += profile.instructions[indices[0]].issued
            for index in indices:
                row = profile.instructions[index]
                clk += TURN * row.issued + sum(
                    stalled for cause, stalled in row.stalls.items()
                    if cause not in (StallCause.VMCNT, StallCause.LGKMCNT, StallCause.BARRIER))
        return max(clk // passes_ - TURN, 0) if passes_ else 0

    def _latency(self, index: int, i: Instruction) -> int:
        machine = self._machine
        if not i.is_load:
            return machine.store
        if index in self._observed_latency:
            return max(self._observed_latency[index] - TURN, machine.l1)
        found = []
        for profile in self._profiles:
            memory = profile.instructions[index].memory
            lines = memory.lines if memory else {}
            total = sum(lines.values())
            levels = [machine.level(level) for level, count in lines.items()
                      if count > _SHARE * total]
            if levels:
                found.append(max(levels))
        return sum(found) // len(found) if found else machine.level(MemoryLevel.L2)

    def _lines(self, index: int) -> int:
        """Lines of 128 bytes that one execution touches."""
        lines = issued = 0
        for profile in self._profiles:
            row = profile.instructions[index]
            if row.memory is not None:
                lines += sum(row.memory.lines.values())
                issued += row.issued
        return lines // issued if issued else 0

    def _conflicts(self, index: int) -> int:
        clk = issued = 0
        for profile in self._profiles:
            row = profile.instructions[index]
            if row.memory is not None:
                clk += row.memory.conflicts
                issued += row.issued
        return clk // issued if issued else 0


def _sharing(profiles: Sequence[Profile]) -> tuple[int, int]:
    """Waves at once that share vector memory, and a path to the LDS: they do much the same."""
    places: set[tuple[int, int, int]] = set()
    units: set[int] = set()
    for profile in profiles:
        for wave in profile.waves:
            places.add((wave.unit, wave.simd, wave.slot))
            units.add(wave.unit)
    each = min(len(places) // len(units), 8) if units else 4
    return max(each, 1), max((each + 1) // 2, 1)
