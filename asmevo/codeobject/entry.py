"""Which registers a launch initialises, and with what."""

from __future__ import annotations

from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.descriptor_fields import FIELDS
from asmevo.isa.registers import EXEC_HI, EXEC_LO, VGPR0, mask
from asmevo.isa.value_numbers import Taint
from asmevo.isa.values import DISPATCH_POINTER, KERNARG_POINTER, Source

_FIELD_NAMES = frozenset(f.name for f in FIELDS)


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


# User SGPRs in their order, and how many each has (LLVM, "Initial Kernel Execution State").
_USER_SGPRS = (
    ("private_segment_buffer", 4, None), ("dispatch_ptr", 2, DISPATCH_POINTER),
    ("queue_ptr", 2, None), ("kernarg_segment_ptr", 2, KERNARG_POINTER), ("dispatch_id", 2, None),
    ("flat_scratch_init", 2, None), ("private_segment_size", 1, None),
)


def entry_sources(descriptor: KernelDescriptor) -> dict[int, Source]:
    """What each register holds when a wave starts; EXEC counts as full.

    Lanes beyond the workgroup never run, whatever EXEC says of them. Preloaded words of the kernarg
    are told by their offset.
    """
    found = {EXEC_LO: Source("exec", value=-1), EXEC_HI: Source("exec", value=-1)}
    register = 0
    for name, count, pointer in _USER_SGPRS:
        field = f"enable_sgpr_{name}"
        if field in _FIELD_NAMES and descriptor.field(field):
            for word in range(count):
                found[register] = Source(f"{pointer or name.replace('_', ' ')} word {word}",
                                         Taint.KERNARG if pointer else Taint.HARDWARE)
                register += 1
    for word in range(descriptor.kernarg_preload_length):
        offset = 4 * (descriptor.kernarg_preload_offset + word)
        found[register] = Source("kernarg", Taint.KERNARG, kernarg=offset)
        register += 1
    register = descriptor.user_sgpr_count
    for axis in "xyz":
        if getattr(descriptor, f"enable_sgpr_workgroup_id_{axis}"):
            found[register] = Source(f"workgroup id {axis}", Taint.WORKGROUP)
            register += 1
    if descriptor.enable_sgpr_workgroup_info:
        found[register] = Source("workgroup info", Taint.WORKGROUP)
    found[VGPR0] = Source("work-item id", Taint.WORK_ITEM)
    return found
