"""The cycle model's parameters as rooflines and static estimates use them."""

from __future__ import annotations

from asmevo.device.emulator.timing_parameters import TimingParameters
from asmevo.profile.machine import Machine
from asmevo.profile.profile import MemoryLevel

_BYTES_PER_CLK_FROM_GB_AND_MHZ = 1000


def machine(parameters: TimingParameters, name: str) -> Machine:
    """The device of a cycle model, called ``name``."""
    p, memory = parameters.machine, parameters.memory

    def device(gigabytes_per_second: int) -> float:
        return gigabytes_per_second * _BYTES_PER_CLK_FROM_GB_AND_MHZ / p.clock_mhz

    return Machine(
        name, p.clock_mhz, p.compute_units,
        bytes_per_clk={
            MemoryLevel.L1: float(parameters.vector_memory.vl1d_bytes_per_clk * p.compute_units),
            MemoryLevel.L2: float(memory.l2_channels * memory.l2_channel_read * p.xcds),
            MemoryLevel.MALL: device(memory.mall_gigabytes_per_second),
            MemoryLevel.HBM: device(memory.hbm_read_gigabytes_per_second),
        },
        hbm_write_bytes_per_clk=device(memory.hbm_write_gigabytes_per_second),
        latency={
            MemoryLevel.L1: memory.vl1d_latency, MemoryLevel.L2: memory.l2_latency,
            MemoryLevel.MALL: memory.mall_latency, MemoryLevel.HBM: memory.hbm_latency,
        },
        lds_bytes_per_clk=parameters.lds.bytes_per_clk,
        lds_latency=parameters.lds.latency,
        scalar_latency=memory.sl1d_latency,
        branch_taken=parameters.issue.branch_taken,
        branch_not_taken=parameters.issue.branch_not_taken,
        barrier_release=parameters.issue.barrier_release,
        misaligned_fetch=parameters.issue.misaligned_fetch,
    )
