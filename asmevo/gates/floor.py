"""The least time that a launch can take, whatever kernel does its work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from asmevo.device.device import DescribedDevice, Device
from asmevo.dispatch.dispatch import Dispatch
from asmevo.isa.program import Program
from asmevo.profile.errors import ProfileError
from asmevo.profile.profile import MemoryLevel, Profile
from asmevo.profile.roofline import Limit, Roofline, roofline

# Some of what the original reads it does not need: whole tiles at an edge, say.
_NEEDED_READS = 0.5
# And most of a tile may be padding.
_NEEDED_OPERATIONS = 0.125


@dataclass(frozen=True, slots=True)
class Floor:
    """A time in microseconds, and what takes it."""

    microseconds: float
    reason: str


def floor_of(
    dispatch: Dispatch, after: tuple[bytes, ...], profile: Profile, program: Program, device: Device
) -> Floor | None:
    """The floor for a dispatch of which the original left ``after`` and has ``profile``.

    What it changed must get to L2; half of what it misses in cold caches, and an eighth of its
    matrix operations, any kernel with its results has to load and compute. ``None`` when the
    device does not say how fast it is or the profile does not count.
    """
    if not isinstance(device, DescribedDevice):
        return None
    machine = device.machine
    x, y, z = dispatch.grid
    try:
        placed = roofline(profile, program, machine, workgroups=x * y * z)
    except ProfileError:
        return None
    clk = machine.clock_mhz
    changed = sum(_changed(region.mapped, data)
                  for region, data in zip(dispatch.regions, after, strict=True)
                  if region.role.written)
    found = [Floor(changed / machine.bytes_per_clk[MemoryLevel.L2] / clk,
                   f"{changed} bytes of results to L2")]
    if profile.source == "modelled":
        # The model starts with cold caches; a timed run on hardware may find them warm.
        loaded = _NEEDED_READS * _loaded(placed)
        found.append(Floor(loaded / machine.bytes_per_clk[MemoryLevel.HBM] / clk,
                           f"{loaded:.0f} bytes of inputs from HBM"))
    busy = max((c.utilisation for c in placed.ceilings if c.limit is Limit.MFMA), default=0.0)
    found.append(Floor(_NEEDED_OPERATIONS * busy * placed.cycles / clk, "matrix operations"))
    return max(found, key=lambda floor: floor.microseconds)


def _loaded(placed: Roofline) -> float:
    moved: Mapping[MemoryLevel, float] = placed.bytes
    return moved.get(MemoryLevel.HBM, 0.0)


def _changed(before: bytes, after: bytes) -> int:
    if before == after:
        return 0
    return int((np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)).sum())
