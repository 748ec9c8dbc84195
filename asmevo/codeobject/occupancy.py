"""How many waves and workgroups of a kernel a compute unit holds at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from asmevo.codeobject.errors import CodeObjectError

WAVE_SIZE = 64
# SGPRs that a wave has beside its own while a trap handler is installed
# (LLVM AMDGPUBaseInfo, TRAP_NUM_SGPRS).
TRAP_HANDLER_SGPRS = 16


class Limit(StrEnum):
    """What bounds the number of workgroups on a compute unit."""

    VGPRS = "VGPRs"
    SGPRS = "SGPRs"
    LDS = "LDS"
    WAVE_SLOTS = "wave slots"
    WORKGROUP_SLOTS = "workgroup slots"


@dataclass(frozen=True, slots=True)
class ComputeUnit:
    """The resources of one compute unit; register counts are those of one SIMD.

    ``vgprs`` are registers of 64 lanes of the unified file, which holds AGPRs as well. Workgroups
    of more than one wave each take one of ``workgroup_slots`` (the barrier resources).
    """

    simds: int
    wave_slots: int
    vgprs: int
    vgpr_granule: int
    sgprs: int
    sgpr_granule: int
    lds_bytes: int
    lds_granule: int
    workgroup_slots: int


def _cdna(lds_bytes: int, lds_granule: int) -> ComputeUnit:
    return ComputeUnit(simds=4, wave_slots=8, vgprs=512, vgpr_granule=8, sgprs=800,
                       sgpr_granule=16, lds_bytes=lds_bytes, lds_granule=lds_granule,
                       workgroup_slots=16)


# Register files, granules, wave and workgroup slots: LLVM AMDGPUBaseInfo (getTotalNumVGPRs,
# getVGPRAllocGranule, getTotalNumSGPRs, getSGPRAllocGranule, getMaxWavesPerEU,
# getMaxWorkGroupsPerCU). LDS: AMD "CDNA3" and "CDNA4" ISA documents, "Local Data Share"; its
# granule is 128 dwords, on gfx950 320 (LLVM "User Guide for AMDGPU Backend", GRANULATED_LDS_SIZE;
# LLVM's compiler took 512 for gfx950 until pull request 208046).
COMPUTE_UNITS: Mapping[str, ComputeUnit] = {
    "gfx90a": _cdna(64 << 10, 512),
    "gfx942": _cdna(64 << 10, 512),
    "gfx950": _cdna(160 << 10, 1280),
}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The outcome for one kernel and workgroup size.

    ``waves_per_simd`` are the waves on the fullest SIMD when the dispatcher spreads waves evenly,
    ``workgroups_per_cu`` the resident workgroups; both are 0 when not even one workgroup fits.
    ``workgroups_by_limit`` says how many workgroups each resource that the kernel takes would allow
    by itself and ``limited_by`` which of them are the scarcest.
    """

    waves_per_simd: int
    workgroups_per_cu: int
    waves_per_workgroup: int
    workgroups_by_limit: Mapping[Limit, int]
    limited_by: tuple[Limit, ...]


def compute_unit(isa: str) -> ComputeUnit:
    """The compute unit of a processor; raises `CodeObjectError` for one that is not known."""
    if isa not in COMPUTE_UNITS:
        raise CodeObjectError(f"the occupancy of {isa} is not known, only that of "
                              f"{', '.join(COMPUTE_UNITS)}")
    return COMPUTE_UNITS[isa]


def waves_by_registers(unit: ComputeUnit, *, vgprs: int, sgprs: int,
                       trap_handler: bool = False) -> tuple[int, int]:
    """Waves that one SIMD's VGPRs and SGPRs allow, wave slots aside."""
    vector = _ceil(max(vgprs, 1), unit.vgpr_granule)
    scalar = _ceil(max(sgprs, 1), unit.sgpr_granule) + TRAP_HANDLER_SGPRS * trap_handler
    return unit.vgprs // vector, unit.sgprs // scalar


def occupancy(isa: str, *, vgprs: int, sgprs: int, lds_bytes: int, workgroup_size: int,
              trap_handler: bool = False) -> Occupancy:
    """Occupancy of a wave64 kernel.

    ``vgprs`` counts the unified file and ``sgprs`` includes VCC and the other extra registers, as
    the descriptor allocates them. ``lds_bytes`` is what a workgroup gets: the declared static size
    plus what the launch adds. ``workgroup_size`` is in work-items. With ``trap_handler`` the extra
    SGPRs of an installed trap handler count; LLVM's own figures leave them out. Raises
    `CodeObjectError` for an unknown processor and for sizes that no launch can have.
    """
    unit = compute_unit(isa)
    if not 1 <= workgroup_size <= 1024:
        raise CodeObjectError(f"a workgroup has 1 to 1024 work-items, not {workgroup_size}")
    if min(vgprs, sgprs, lds_bytes) < 0:
        raise CodeObjectError("registers and LDS bytes cannot be negative")
    waves = -(-workgroup_size // WAVE_SIZE)
    vector, scalar = waves_by_registers(unit, vgprs=vgprs, sgprs=sgprs, trap_handler=trap_handler)
    by_limit = {
        Limit.VGPRS: unit.simds * vector // waves,
        Limit.SGPRS: unit.simds * scalar // waves,
        Limit.WAVE_SLOTS: unit.simds * unit.wave_slots // waves,
    }
    if lds_bytes:
        by_limit[Limit.LDS] = unit.lds_bytes // _ceil(lds_bytes, unit.lds_granule)
    if waves > 1:
        by_limit[Limit.WORKGROUP_SLOTS] = unit.workgroup_slots
    groups = min(by_limit.values())
    return Occupancy(
        waves_per_simd=-(-groups * waves // unit.simds),
        workgroups_per_cu=groups,
        waves_per_workgroup=waves,
        workgroups_by_limit=by_limit,
        limited_by=tuple(limit for limit, count in by_limit.items() if count == groups),
    )


def _ceil(value: int, granule: int) -> int:
    return -(-value // granule) * granule
