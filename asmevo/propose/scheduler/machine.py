"""What a schedule is made for, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.profile.profile import MemoryLevel

# Four SIMDs take turns to issue, so a wave has a turn every four clk (AMD CDNA3 white paper).
TURN = 4


@dataclass(frozen=True, slots=True)
class MachineTimes:
    """Latencies and rates in clk; the defaults are those of conf/device/emulator.yaml.

    ``l1`` to ``hbm`` are from issue of a vector load to its result, by where it is found, ``store``
    until a store is done. ``scalar`` is a scalar load's that misses its cache. An LDS access takes
    ``lds`` and its data cycles. ``matrix`` is the least time until a matrix result can be used.
    ``quarter`` is a VALU operation of quarter rate, ``misaligned`` what fetching an 8-byte
    instruction across an 8-byte boundary costs; ``memory_rate`` are bytes a clk of vector memory,
    ``line`` the clk of an access that is scattered over lines, each. Code comes in lines of 128
    bytes, each ``code_miss`` after it is asked for, ``code_lines_ahead`` before it is needed.
    """

    l1: int = 116
    l2: int = 288
    mall: int = 476
    hbm: int = 876
    store: int = 288
    scalar: int = 172
    lds: int = 48
    lds_rate: int = 64
    lds_store: int = 4
    matrix: int = 24
    quarter: int = 16
    misaligned: int = 1
    memory_rate: int = 64
    line: int = 2
    branch_taken: int = 32
    branch_not_taken: int = 8
    code_miss: int = 216
    code_lines_ahead: int = 2

    def level(self, level: MemoryLevel) -> int:
        """Clk until a vector load has its result from a level."""
        levels: Mapping[MemoryLevel, int] = {
            MemoryLevel.L1: self.l1, MemoryLevel.L2: self.l2, MemoryLevel.MALL: self.mall,
            MemoryLevel.HBM: self.hbm}
        return levels[level]
