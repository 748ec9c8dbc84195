"""Which registers a launch initialises."""

from __future__ import annotations

from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.isa.registers import VGPR0, mask


def entry_registers(descriptor: KernelDescriptor) -> int:
    """Registers with a defined value when a wave starts, as a mask of `asmevo.isa.registers`.

    Source: LLVM "User Guide for AMDGPU Backend", "Initial Kernel Execution State": the user SGPRs,
    then the enabled system SGPRs in order, and v0, which packs the work-item ids on gfx90a and
    later. With architected flat scratch (gfx940 and later) the private segment takes no SGPR.
    """
    system = (
        descriptor.enable_sgpr_workgroup_id_x,
        descriptor.enable_sgpr_workgroup_id_y,
        descriptor.enable_sgpr_workgroup_id_z,
        descriptor.enable_sgpr_workgroup_info,
    )
    return mask(0, descriptor.user_sgpr_count + sum(system)) | mask(VGPR0)
