"""Which part of a launch is simulated, and how much of the device is at work beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asmevo.device.emulator.settings import SettingError
from asmevo.device.emulator.timing_parameters import MachineParameters


@dataclass(frozen=True, slots=True)
class Sample:
    """``units`` compute units of one XCD and the ``workgroups`` (linear ids) that they run.

    ``busy_units_of_xcd`` and ``busy_units`` of the device are at work in the launch.
    """

    xcd: int
    units: int
    workgroups: tuple[int, ...]
    busy_units_of_xcd: int
    busy_units: int

    def __str__(self) -> str:
        units = ("its one busy compute unit" if self.busy_units_of_xcd == 1 else
                 f"all of its {self.units} busy compute units"
                 if self.units == self.busy_units_of_xcd else
                 f"{self.units} of its {self.busy_units_of_xcd} busy compute units")
        return f"{units} of XCD {self.xcd}, {self.busy_units} busy on the device"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many XCDs of a launch are simulated, one at a time, and compute units of each.

    The more units of an XCD, the more of what they share is seen rather than estimated (see
    core/timing_sharing.hpp). A launch of at most ``whole`` workgroups is simulated as a whole.
    Raises `SettingError` for a count that is none.
    """

    xcds: int = 2
    units: int = 4
    whole: int = 64

    def __post_init__(self) -> None:
        for name, least in (("xcds", 1), ("units", 1), ("whole", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingError(f"device.timing.sampling.{name} must be an integer of at least "
                                   f"{least}, not {value!r}")

    def samples(self, grid: tuple[int, int, int], machine: MachineParameters, *,
                seed: int | Sequence[int]) -> list[Sample]:
        """What to simulate of a launch of ``grid`` workgroups.

        Workgroups are dealt round-robin over the XCDs (AMD, "MI300 compute and memory partition
        modes"); where only some units of an XCD are simulated, each runs every *n*-th workgroup of
        the XCD's *n* busy units [assumed]. The first XCD has the most workgroups and is always
        simulated, as is its first unit; the others follow from ``seed``, so that a kernel cannot be
        fast on the simulated ones alone.
        """
        count = grid[0] * grid[1] * grid[2]
        rng = np.random.default_rng(seed)
        busy_xcds = min(count, machine.xcds)
        others = [1 + int(xcd) for xcd in rng.permutation(busy_xcds - 1)] if busy_xcds else []
        whole = count <= self.whole
        chosen = [0, *others][:machine.xcds if whole else self.xcds]
        busy = sum(min(len(range(xcd, count, machine.xcds)), machine.compute_units_per_xcd)
                   for xcd in range(busy_xcds))
        units = machine.compute_units_per_xcd if whole else self.units
        return [_sample(xcd, range(xcd, count, machine.xcds), units, busy, machine, rng)
                for xcd in chosen]


def _sample(xcd: int, workgroups: range, most_units: int, busy: int, machine: MachineParameters,
            rng: np.random.Generator) -> Sample:
    busy_of_xcd = min(len(workgroups), machine.compute_units_per_xcd)
    units = min(most_units, busy_of_xcd)
    if units == busy_of_xcd:
        return Sample(xcd, units, tuple(workgroups), busy_of_xcd, busy)
    drawn = [0, *(1 + int(unit) for unit in
                  rng.choice(busy_of_xcd - 1, size=units - 1, replace=False))]
    order = sorted(index for unit in drawn
                   for index in range(unit, len(workgroups), busy_of_xcd))
    return Sample(xcd, units, tuple(workgroups[index] for index in order), busy_of_xcd, busy)
