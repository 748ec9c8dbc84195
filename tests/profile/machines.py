"""A machine of round numbers."""

from __future__ import annotations

from asmevo.profile.machine import Machine
from asmevo.profile.profile import MemoryLevel

ROUND = Machine(
    "round", clock_mhz=1000, compute_units=10,
    hbm_write_bytes_per_clk=64.0,
    bytes_per_clk={MemoryLevel.L1: 640.0, MemoryLevel.L2: 320.0, MemoryLevel.MALL: 160.0,
                   MemoryLevel.HBM: 128.0},
    latency={MemoryLevel.L1: 100, MemoryLevel.L2: 300, MemoryLevel.MALL: 500,
             MemoryLevel.HBM: 900},
    lds_bytes_per_clk=128, lds_latency=50, scalar_latency=60, branch_taken=32,
    branch_not_taken=8, barrier_release=4, misaligned_fetch=1)
