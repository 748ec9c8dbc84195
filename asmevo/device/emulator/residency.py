"""How many waves and workgroups a compute unit holds at once."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.device.emulator.timing_parameters import MachineParameters
from asmevo.errors import AsmEvoError

_SIMDS = 4
_VGPR_ACCUM_GRANULE = 4  # accum_offset is a multiple of 4 (gfx90a+ kernel descriptor)


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


def _round_up(value: int, granule: int) -> int:
    return -(-value // granule) * granule
