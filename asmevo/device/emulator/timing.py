"""The cycle model: from an execution trace to cycles, and to stalls per instruction.

Some compute units of one XCD are simulated together: workgroups occupy wave slots as registers, LDS
and slots allow, the four SIMDs of each unit issue in order, one turn every 4 clk, and the units
share L2, MALL and HBM. What is not simulated is accounted for by scaling: the paths and capacities
that the simulated units share are their part of the machine's, and lines that other units or XCDs
bring in as well pay for no path of their own (core/timing_sharing.hpp).
Times are device time from the launch to the last completion, outstanding stores included. TLB
misses and dependent-issue latencies of the VALU are not modelled (no public figure exists for
them). What uses the result of the matrix operation before it waits for it; wait states that the
program has for that are issued and timed. What the model has no timing for is refused by name.
Every number is `modelled`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asmevo_core
import numpy as np
import numpy.typing as npt

from asmevo.device.emulator.residency import residency
from asmevo.device.emulator.sampling import Sample, Sampling
from asmevo.device.emulator.timing_parameters import LINE_BYTES, TimingParameters
from asmevo.device.emulator.timing_result import TimingResult
from asmevo.device.emulator.timing_table import is_byte_matrix, matrix_clk, timing_table
from asmevo.isa.program import Program

_SIMDS = 4
_MAX_COST_Q8 = 1 << 20


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A program as the core takes it, and the clk of each instruction in the matrix pipe."""

    program: Program
    table: list[Any]
    matrix: npt.NDArray[np.uint64]
    byte_matrix: npt.NDArray[np.uint64]


class TimingModel:
    """In-order issue model of compute units of a gfx942 device, and of what they share."""

    def __init__(self, parameters: TimingParameters, sampling: Sampling | None = None) -> None:
        self.parameters = parameters
        self.sampling = sampling or Sampling()
        self._last: _Lowered | None = None

    def check(self, program: Program) -> None:
        """Raise UnsupportedError naming the first instruction that has no timing."""
        self._lowered(program)

    def samples(self, grid: tuple[int, int, int], *,
                seed: int | Sequence[int]) -> list[Sample]:
        """What to simulate of a launch of ``grid`` workgroups."""
        return self.sampling.samples(grid, self.parameters.machine, seed=seed)

    def run(self, program: Program, trace: Any, sample: Sample, *, vgprs: int, agprs: int,
            sgprs: int, lds_bytes: int, workgroup_waves: int,
            buffers: Sequence[tuple[int, int]] = (), timeline_limit: int = 0,
            seconds: float = 0.0) -> TimingResult:
        """Time the ``sample`` of a launch, whose workgroups are in ``trace``.

        The trace may hold others as well: one execution can be timed under several models, each
        with samples of its own. Registers are per work-item (``sgprs`` per wave, VCC and friends
        included), ``lds_bytes`` static plus dynamic. ``buffers`` of the launch, (address, bytes),
        bound how much its compute units can touch. At most ``timeline_limit`` events are recorded.
        ``seconds`` bounds the host time, 0 does not. Raises UnsupportedError, ResidencyError,
        TimeoutError, or ValueError for a trace that does not belong to ``program`` and ``sample``.
        """
        machine = self.parameters.machine
        room = residency(machine, vgprs=vgprs, agprs=agprs, sgprs=sgprs, lds_bytes=lds_bytes,
                         workgroup_waves=workgroup_waves)
        lowered = self._lowered(program)
        result = asmevo_core.simulate_timing(
            lowered.table, trace, self.core_parameters(),
            slots=room.slots, resident=room.workgroups, units=sample.units,
            busy_units_of_xcd=sample.busy_units_of_xcd, busy_units=sample.busy_units,
            workgroups=list(sample.workgroups),
            buffers=[(address // LINE_BYTES, -(-size // LINE_BYTES)) for address, size in buffers],
            timeline_limit=timeline_limit, seconds=seconds)
        available = max(1, result.cycles * _SIMDS * sample.units)
        matrix, byte_matrix = (float(result.issued @ clk) / available
                               for clk in (lowered.matrix, lowered.byte_matrix))
        # The clock is the device's, idle compute units included.
        busy = sample.busy_units / machine.compute_units
        clock = machine.clock(matrix * busy, byte_matrix * busy)
        return TimingResult(
            cycles=int(result.cycles),
            microseconds=result.cycles / clock + self.parameters.launch.overhead_ns / 1000,
            clock_mhz=round(clock), matrix_utilisation=matrix + byte_matrix, scope=str(sample),
            core=result)

    def core_parameters(self) -> Any:
        """`asmevo_core.TimingParameters` of the machine."""
        p = self.parameters
        core = asmevo_core.TimingParameters()
        core.branch_taken = p.issue.branch_taken
        core.branch_not_taken = p.issue.branch_not_taken
        core.barrier_release = p.issue.barrier_release
        core.matrix_latency = p.issue.matrix_latency
        core.beside_other = p.issue.beside_other
        core.code_miss_latency = p.issue.code_miss
        core.code_lines = p.issue.code_bytes // LINE_BYTES
        core.code_lines_ahead = p.issue.code_lines_ahead
        core.wave_launch = p.launch.wave_interval
        core.vmem_to_lds = p.vector_memory.to_lds
        core.atomic_factor = p.vector_memory.atomic_factor
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
        core.l2_lines = p.memory.l2_bytes // LINE_BYTES
        core.l2_channels = p.memory.l2_channels
        core.l2_read_q8 = _per_line(p.memory.l2_channel_read)
        core.l2_write_q8 = _per_line(p.memory.l2_channel_write)
        core.cu_fill_q8 = _per_line(p.memory.l2_to_compute_unit)
        core.mall_latency = p.memory.mall_latency
        core.mall_lines = p.memory.mall_bytes // LINE_BYTES
        core.mall_q8 = _per_line(self._per_clk(p.memory.mall_gigabytes_per_second))
        core.hbm_latency = p.memory.hbm_latency
        core.hbm_read_q8 = _per_line(self._per_clk(p.memory.hbm_read_gigabytes_per_second))
        core.hbm_write_q8 = _per_line(self._per_clk(p.memory.hbm_write_gigabytes_per_second))
        core.store_latency = p.memory.store_latency
        core.atomic_latency = p.memory.atomic_latency
        core.lds_latency = p.lds.latency
        core.lds_pair_bytes_per_clk = p.lds.pair_bytes_per_clk
        core.lds_bytes_per_clk = p.lds.bytes_per_clk
        core.lds_store_overhead = p.lds.store_overhead
        return core

    def _lowered(self, program: Program) -> _Lowered:
        # Several samples and dispatches of one program are timed in a row.
        if self._last is None or self._last.program is not program:
            issue = self.parameters.issue
            clks = [matrix_clk(instruction, issue) for instruction in program.instructions]
            byte = [is_byte_matrix(instruction) for instruction in program.instructions]
            self._last = _Lowered(
                program, timing_table(program, issue),
                np.array([0 if b else clk for clk, b in zip(clks, byte, strict=True)], np.uint64),
                np.array([clk if b else 0 for clk, b in zip(clks, byte, strict=True)], np.uint64))
        return self._last

    def _per_clk(self, gigabytes_per_second: int) -> float:
        return gigabytes_per_second * 1000 / self.parameters.machine.clock_mhz


def _per_line(bytes_per_clk: float) -> int:
    """clk/256 that one line takes at a rate."""
    return min(round(LINE_BYTES * 256 / bytes_per_clk), _MAX_COST_Q8)
