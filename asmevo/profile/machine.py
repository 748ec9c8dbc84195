"""What a roofline and a static estimate need to know of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.profile.profile import MemoryLevel


@dataclass(frozen=True, slots=True)
class Machine:
    """Rates and latencies of a device; `asmevo.device.emulator.machine` takes them from its tables.

    ``bytes_per_clk`` are the device's at ``clock_mhz`` (of HBM, for reading), and ``latency`` clk
    from issue to a result that is found there. ``lds_latency`` leaves the data cycles out;
    ``lds_bytes_per_clk`` are those of a compute unit. ``branch_taken`` and ``branch_not_taken``
    are clk to the next issue.
    """

    name: str
    clock_mhz: int
    compute_units: int
    bytes_per_clk: Mapping[MemoryLevel, float]
    hbm_write_bytes_per_clk: float
    latency: Mapping[MemoryLevel, int]
    lds_bytes_per_clk: int
    lds_latency: int
    scalar_latency: int
    branch_taken: int
    branch_not_taken: int
    barrier_release: int
    misaligned_fetch: int
