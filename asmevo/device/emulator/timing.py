"""The cycle model: from an execution trace to cycles, and to stalls per instruction.

One compute unit is simulated at a time: its workgroups occupy wave slots as registers, LDS and
slots allow, and its four SIMDs issue in order, one turn every 4 clk each.
Times are device time from the launch of the first wave to the last completion, outstanding stores
included; launch overhead, instruction cache misses, TLB misses, L2 capacity, lines that another
compute unit brought into L2, and dependent-issue latencies of the VALU are not modelled (no public
figure exists for them, or it is a later refinement). Results of matrix operations are not waited
for: where gfx942 needs wait states the program has them, and their issue is timed. What the model
has no timing for is refused by name. Every number is `modelled`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import asmevo_core
import numpy as np
import numpy.typing as npt

from asmevo.device.device import TimingSource, UnsupportedError
from asmevo.device.emulator.timing_parameters import (
    LINE_BYTES,
    TURN,
    MachineParameters,
    TimingParameters,
)
from asmevo.errors import AsmEvoError
from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.matrix_timing import MatrixClass, matrix_class, passes
from asmevo.isa.program import Program
from asmevo.isa.targets import GFX942
from asmevo.profile.profile import InstructionProfile, Profile, StallCause

# The rows of the stall matrix, in the order of the C++ enumeration.
STALL_CAUSES = (StallCause.VMCNT, StallCause.LGKMCNT, StallCause.DEPENDENCY, StallCause.UNIT_BUSY,
                StallCause.BARRIER, StallCause.FETCH, StallCause.NOP)

_SIMDS = 4
_DRAWN_UNITS = 2
_VGPR_ACCUM_GRANULE = 4  # accum_offset is a multiple of 4 (gfx90a+ kernel descriptor)
_NO_WAIT = 0xFF

_CLASSES = {
    Unit.SALU: asmevo_core.IssueClass.SALU,
    Unit.SMEM: asmevo_core.IssueClass.SMEM,
    Unit.VALU: asmevo_core.IssueClass.VALU,
    Unit.TRANS: asmevo_core.IssueClass.VALU,
    Unit.MFMA: asmevo_core.IssueClass.VALU,
    Unit.VMEM: asmevo_core.IssueClass.VMEM,
    Unit.FLAT: asmevo_core.IssueClass.VMEM,
    Unit.LDS: asmevo_core.IssueClass.LDS,
    Unit.BRANCH: asmevo_core.IssueClass.BRANCH,
    Unit.WAIT: asmevo_core.IssueClass.WAIT,
    Unit.NOP: asmevo_core.IssueClass.NOP,
    Unit.BARRIER: asmevo_core.IssueClass.BARRIER,
    Unit.END: asmevo_core.IssueClass.END,
}
_UNTIMED_OPERATIONS = frozenset({"ds_nop"})
# Global wave sync belongs to several workgroups at once.
_UNTIMED_PREFIXES = ("s_scratch_", "ds_gws_")

# Operations on caches: what they do to the model's.
_CACHE_OPERATIONS = {
    "buffer_wbl2": asmevo_core.AccessKind.WRITE_BACK,
    "buffer_inv": asmevo_core.AccessKind.INVALIDATE,
    "s_dcache_wb": asmevo_core.AccessKind.WRITE_BACK,
    "s_dcache_inv": asmevo_core.AccessKind.INVALIDATE,
    "s_dcache_inv_vol": asmevo_core.AccessKind.INVALIDATE,
    "s_dcache_wb_vol": asmevo_core.AccessKind.WRITE_BACK,
}
# Of Unit.MESSAGE: a wave sleeps, or changes its priority.
_SLEEP = "s_sleep"
_PRIORITY = "s_setprio"
_NO_PRIORITY = 0xFF
_SLEEP_LIMIT = 128  # SIMM16[6:0] (CDNA3 ISA, "S_SLEEP")

# Packed f32 operations do not run beside the matrix pipe (PYHIP).
_NOT_BESIDE_MATRIX = frozenset({"v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"})

# 32-bit integer multiplies (LLVM SISchedule.td, WriteQuarterRate32).
_QUARTER_RATE = frozenset({"v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u64_u32",
                           "v_mad_i64_i32"})


class ResidencyError(AsmEvoError):
    """A workgroup of the kernel does not fit on a compute unit."""


@dataclass(frozen=True, slots=True)
class Residency:
    """Waves a SIMD and workgroups a compute unit can hold at once."""

    slots: int
    workgroups: int

    def whole_workgroups(self, waves: int) -> int:
        """Workgroups of ``waves`` waves that a compute unit holds, at least one."""
        return max(1, min(self.workgroups, self.slots * _SIMDS // waves))


@dataclass(frozen=True, slots=True)
class TimingResult:
    """What the model says of one launch.

    ``cycles`` from the first wave's launch to the last completion; ``issued[i]`` how often
    instruction *i* issued on the simulated compute unit; ``stalls[c, i]`` cycles that waves stood
    at it because of ``STALL_CAUSES[c]``.
    """

    cycles: int
    microseconds: float
    issued: npt.NDArray[np.uint64]
    stalls: npt.NDArray[np.uint64]

    def profile(self, dispatch: str, device: str) -> Profile:
        """The same as a `Profile` of ``dispatch`` on ``device``, labelled modelled."""
        instructions = tuple(
            InstructionProfile(
                int(count),
                {cause: int(clk) for cause, clk in zip(STALL_CAUSES, column, strict=True) if clk})
            for count, column in zip(self.issued, self.stalls.T, strict=True)
        )
        return Profile(dispatch, TimingSource.MODELLED.value, device, self.cycles, instructions)


def residency(machine: MachineParameters, *, vgprs: int, agprs: int, sgprs: int, lds_bytes: int,
              workgroup_waves: int) -> Residency:
    """How many waves and workgroups fit on a compute unit.

    Architectural and accumulation VGPRs share one file (CDNA3 ISA, "VGPRs"). Raises ResidencyError
    when not even one workgroup fits.
    """
    total = vgprs if agprs == 0 else _round_up(vgprs, _VGPR_ACCUM_GRANULE) + agprs
    slots = min(
        machine.waves_per_simd,
        machine.vgprs_per_simd // max(_round_up(total, machine.vgpr_granule), 1),
        machine.sgprs_per_simd // max(_round_up(sgprs, machine.sgpr_granule), 1),
    )
    workgroups = machine.workgroups_per_compute_unit
    if lds_bytes:
        workgroups = min(workgroups, machine.lds_bytes // _round_up(lds_bytes, machine.lds_granule))
    if workgroups < 1 or workgroup_waves > slots * _SIMDS:
        raise ResidencyError(
            f"a workgroup of {workgroup_waves} waves with {vgprs}+{agprs} VGPRs, {sgprs} SGPRs and "
            f"{lds_bytes} bytes of LDS does not fit on a compute unit")
    return Residency(slots, workgroups)


def representative_units(grid: tuple[int, int, int], model: TimingModel, *,
                         seed: int) -> list[list[int]]:
    """Linear workgroup ids of the compute units to simulate: the first, the last, two others.

    Workgroups are dealt round-robin over the XCDs (AMD, "MI300 compute and memory partition
    modes") and, inside an XCD, over its compute units [assumed]: unit *k* of *n* runs every *n*-th
    workgroup from *k* on, and the first unit has the most. The others follow from ``seed``, so that
    a kernel cannot be fast on the simulated units alone.
    """
    count = grid[0] * grid[1] * grid[2]
    units = model.parameters.machine.compute_units
    busy = min(count, units)
    drawn = np.random.default_rng(seed).integers(0, busy, size=_DRAWN_UNITS)
    chosen = dict.fromkeys([0, busy - 1, *drawn.tolist()])
    return [list(range(unit, count, units)) for unit in chosen]


class TimingModel:
    """In-order issue model of one compute unit of a gfx942 device."""

    def __init__(self, parameters: TimingParameters) -> None:
        self.parameters = parameters

    def check(self, program: Program) -> None:
        """Raise UnsupportedError naming the first instruction that has no timing."""
        self._table(program)

    def run(self, program: Program, trace: Any, *, vgprs: int, agprs: int, sgprs: int,
            lds_bytes: int, workgroup_waves: int, workgroups: int) -> TimingResult:
        """Time the traced workgroups of a launch of ``workgroups`` workgroups.

        ``trace`` is an `asmevo_core.Trace` of one unit of `representative_units`; registers are
        per work-item (``sgprs`` per wave, VCC and friends included), ``lds_bytes`` static plus
        dynamic. Raises UnsupportedError, ResidencyError, or ValueError for a trace that does not
        belong to ``program``.
        """
        room = residency(self.parameters.machine, vgprs=vgprs, agprs=agprs, sgprs=sgprs,
                         lds_bytes=lds_bytes, workgroup_waves=workgroup_waves)
        cycles, issued, stalls = asmevo_core.simulate_timing(
            self._table(program), trace, self.core_parameters(workgroups),
            slots=room.slots, workgroups=room.workgroups)
        return TimingResult(int(cycles), cycles / self.parameters.machine.clock_mhz, issued, stalls)

    def core_parameters(self, workgroups: int) -> Any:
        """`asmevo_core.TimingParameters` of the simulated compute unit in a launch.

        Its share of the bandwidth of L2 and HBM follows from how many units the launch keeps busy.
        """
        p = self.parameters
        active = max(1, min(workgroups, p.machine.compute_units))
        active_in_xcd = -(-active // p.machine.xcds)
        hbm_bytes_per_clk = p.memory.hbm_gigabytes_per_second * 1000 / p.machine.clock_mhz
        core = asmevo_core.TimingParameters()
        core.branch_taken = p.issue.branch_taken
        core.branch_not_taken = p.issue.branch_not_taken
        core.barrier_release = p.issue.barrier_release
        core.after_matrix = p.issue.after_matrix
        core.vmem_to_lds = p.vector_memory.to_lds
        core.atomic_factor = p.vector_memory.atomic_factor
        core.atomic_latency = p.memory.atomic_latency
        core.vmem_minimum = p.vector_memory.minimum
        core.vmem_bytes_per_clk = p.vector_memory.bytes_per_clk
        core.vl1d_bytes_per_clk = p.vector_memory.vl1d_bytes_per_clk
        core.vmem_queue = p.vector_memory.queue
        core.vl1d_latency = p.memory.vl1d_latency
        core.vl1d_lines = p.memory.vl1d_bytes // LINE_BYTES
        core.sl1d_latency = p.memory.sl1d_latency
        core.sl1d_miss_latency = p.memory.sl1d_miss_latency
        core.sl1d_lines = p.memory.sl1d_bytes // LINE_BYTES
        core.l2_latency = p.memory.l2_latency
        core.hbm_latency = p.memory.hbm_latency
        core.store_latency = p.memory.store_latency
        core.l2_clk_per_line_q8 = _per_line(p.memory.l2_bytes_per_clk / active_in_xcd)
        core.hbm_clk_per_line_q8 = _per_line(hbm_bytes_per_clk / active)
        core.lds_latency = p.lds.latency
        core.lds_pair_bytes_per_clk = p.lds.pair_bytes_per_clk
        core.lds_bytes_per_clk = p.lds.bytes_per_clk
        core.lds_store_overhead = p.lds.store_overhead
        return core

    def _table(self, program: Program) -> list[Any]:
        return [self._instruction(instruction, offset, end) for instruction, offset, end in
                zip(program.instructions, program.offsets, program.offsets[1:], strict=False)]

    def _instruction(self, instruction: Instruction, offset: int, end: int) -> Any:
        _refuse_untimed(instruction)
        issue = self.parameters.issue
        busy, matrix = TURN, 0
        if instruction.unit is Unit.MFMA:
            busy, matrix = self._matrix(instruction)
        elif instruction.op in _QUARTER_RATE:
            busy = issue.integer_multiply
        elif instruction.unit is Unit.VALU:
            busy = issue.valu
        elif instruction.unit is Unit.TRANS:
            busy = issue.transcendental
        elif instruction.unit is Unit.NOP:
            busy = TURN * _wait_states(instruction)
        elif instruction.op == _SLEEP:
            busy = max(TURN, issue.sleep * (_immediate(instruction) % _SLEEP_LIMIT))
        wait = instruction.wait
        # Eight bytes that straddle two 8-byte fetch units arrive later.
        misaligned = end - offset == 8 and offset % 8 == 4
        return asmevo_core.InstructionTiming(
            _issue_class(instruction),
            busy=busy,
            vmcnt=instruction.vmcnt,
            lgkmcnt=instruction.lgkmcnt,
            wait_vmcnt=_NO_WAIT if wait is None or wait.vmcnt is None else wait.vmcnt,
            wait_lgkmcnt=_NO_WAIT if wait is None or wait.lgkmcnt is None else wait.lgkmcnt,
            fetch_debt=issue.misaligned_fetch if misaligned else 0,
            access=_access(instruction),
            matrix=matrix,
            beside_matrix=instruction.op not in _NOT_BESIDE_MATRIX,
            priority=(_immediate(instruction) & 3 if instruction.op == _PRIORITY
                      else _NO_PRIORITY),
        )

    def _matrix(self, instruction: Instruction) -> tuple[int, int]:
        """clk that a matrix operation takes the ALU and the matrix pipe.

        The ALU is free again while an XDL operation goes on, not during one of f32 or f64. Results
        need no modelling: software waits for them with wait states, which are issued and timed.
        """
        issue = self.parameters.issue
        clk = issue.matrix_pass * passes(instruction, GFX942)
        xdl = matrix_class(instruction.op, GFX942) is MatrixClass.XDL
        return (min(issue.matrix_start, clk) if xdl else clk), clk


def _refuse_untimed(instruction: Instruction) -> None:
    unit = instruction.unit
    supported = (
        (unit in _CLASSES or instruction.op in (_SLEEP, _PRIORITY))
        and instruction.op not in _UNTIMED_OPERATIONS
        and not instruction.op.startswith(_UNTIMED_PREFIXES)
        and (unit not in (Unit.SMEM, Unit.VMEM, Unit.FLAT) or instruction.accesses_memory
             or instruction.op in _CACHE_OPERATIONS)
    )
    if not supported:
        raise UnsupportedError(f"the cycle model has no timing for '{instruction.text}'")


def _issue_class(instruction: Instruction) -> asmevo_core.IssueClass:
    if instruction.op == _SLEEP:
        return asmevo_core.IssueClass.NOP
    if instruction.op == _PRIORITY:
        return asmevo_core.IssueClass.WAIT  # the instruction buffer's, like a wait for nothing
    return _CLASSES[instruction.unit]


def _access(instruction: Instruction) -> asmevo_core.AccessKind:
    if instruction.op in _CACHE_OPERATIONS:
        return _CACHE_OPERATIONS[instruction.op]
    if instruction.is_atomic:
        return asmevo_core.AccessKind.ATOMIC
    if instruction.is_store:
        return asmevo_core.AccessKind.STORE
    if instruction.unit is Unit.VMEM and ("lds" in instruction.op.split("_")
                                          or instruction.modifier("lds") is not None):
        return asmevo_core.AccessKind.LOAD_TO_LDS
    return asmevo_core.AccessKind.LOAD


def _wait_states(instruction: Instruction) -> int:
    """``s_nop N`` gives N + 1 wait states (CDNA3 ISA, "SOPP")."""
    states = _immediate(instruction)
    if not 0 <= states < 16:
        raise UnsupportedError(f"the cycle model has no timing for '{instruction.text}'")
    return states + 1


def _immediate(instruction: Instruction) -> int:
    operand = instruction.operands[0]
    if operand.kind is not OperandKind.CONSTANT:
        raise UnsupportedError(f"the cycle model has no timing for '{instruction.text}'")
    return operand.value


def _per_line(bytes_per_clk: float) -> int:
    """clk/256 that one line takes at a rate."""
    return min(round(LINE_BYTES * 256 / bytes_per_clk), 1 << 20)


def _round_up(value: int, granule: int) -> int:
    return -(-value // granule) * granule
