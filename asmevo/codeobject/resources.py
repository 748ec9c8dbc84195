"""Registers that machine code uses, and the allocation that covers them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from asmevo.codeobject.descriptor import (
    ACCUM_GRANULE,
    EXTRA_SGPRS,
    SGPR_GRANULE,
    SGPR_LIMIT,
    VGPR_GRANULE,
    VGPR_LIMIT,
    KernelDescriptor,
)
from asmevo.codeobject.descriptor_fields import BY_NAME
from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.errors import RebuildError

_REGISTER = re.compile(r"(?<![\w.])([vsa])(?:(\d+)|\[\d+:(\d+)\])(?![\w:])")
_INDIRECT = re.compile(r"s_set_gpr_idx_|v_movrel|s_movrel")
_ACCUM_LIMIT = 256


@dataclass(frozen=True, slots=True)
class RegisterUse:
    """One more than the highest register number used of each file.

    ``indirect`` says that registers are also addressed through M0, so that the numbers are lower
    bounds.
    """

    vgprs: int
    agprs: int
    sgprs: int
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a descriptor allocates: ``vgprs`` counts the unified file, AGPRs included."""

    vgprs: int
    accum_offset: int
    sgprs: int

    @classmethod
    def of(cls, descriptor: KernelDescriptor) -> Allocation:
        return cls(descriptor.next_free_vgpr, descriptor.accum_offset, descriptor.next_free_sgpr)


def register_use(listing: Iterable[Row]) -> RegisterUse:
    """Scan disassembled text. Every numbered register an instruction touches is in its text; the
    implicit ones (VCC, M0, EXEC) are outside the counted files.
    """
    highest = {"v": 0, "a": 0, "s": 0}
    indirect = False
    for text in {row[2] for row in listing}:
        for file, single, last in _REGISTER.findall(text):
            highest[file] = max(highest[file], int(single or last) + 1)
        indirect = indirect or _INDIRECT.match(text) is not None
    return RegisterUse(highest["v"], highest["a"], highest["s"], indirect)


def hardware_sgprs(descriptor: KernelDescriptor) -> int:
    """SGPRs that the hardware fills before the first instruction.

    LLVM "User Guide for AMDGPU Backend", section "Initial Kernel Execution State".
    """
    system = sum(descriptor.field(f"enable_sgpr_workgroup_{name}")
                 for name in ("id_x", "id_y", "id_z", "info"))
    return descriptor.user_sgpr_count + system


def required_allocation(descriptor: KernelDescriptor, use: RegisterUse, *,
                        allow_lower: bool = False) -> Allocation:
    """The allocation for ``use``: what the descriptor declares unless the code needs more.

    With ``allow_lower`` it is the least that covers the code. Raises `RebuildError` when the
    registers do not fit the hardware, or lowering is asked for code with indirect registers.
    """
    declared = Allocation.of(descriptor)
    if allow_lower and use.indirect:
        raise RebuildError("the register allocation cannot be lowered: the kernel addresses "
                           "registers through M0")
    floor = Allocation(0, ACCUM_GRANULE, 0) if allow_lower else declared
    accum_offset = floor.accum_offset
    if use.agprs or allow_lower:
        accum_offset = max(accum_offset, _ceil(use.vgprs, ACCUM_GRANULE))
    vgprs = max(use.vgprs, accum_offset + use.agprs if use.agprs else accum_offset, 1)
    if accum_offset > _ACCUM_LIMIT or vgprs > VGPR_LIMIT:
        raise RebuildError(f"the kernel uses {use.vgprs} VGPRs and {use.agprs} AGPRs, more than "
                           f"the {VGPR_LIMIT} that a wave can have")
    sgprs = max(use.sgprs, hardware_sgprs(descriptor))
    return Allocation(
        max(floor.vgprs, _ceil(vgprs, VGPR_GRANULE)),
        accum_offset,
        max(floor.sgprs, min(_ceil(sgprs + EXTRA_SGPRS, SGPR_GRANULE) - EXTRA_SGPRS, SGPR_LIMIT)),
    )


def with_allocation(descriptor: KernelDescriptor, allocation: Allocation) -> KernelDescriptor:
    """The descriptor with other register counts and nothing else changed."""
    rsrc1 = _inserted(descriptor.compute_pgm_rsrc1, "granulated_workitem_vgpr_count",
                      _ceil(allocation.vgprs, VGPR_GRANULE) // VGPR_GRANULE - 1)
    rsrc1 = _inserted(rsrc1, "granulated_wavefront_sgpr_count",
                      _ceil(allocation.sgprs + EXTRA_SGPRS, SGPR_GRANULE) // SGPR_GRANULE - 1)
    rsrc3 = _inserted(descriptor.compute_pgm_rsrc3, "accum_offset",
                      allocation.accum_offset // ACCUM_GRANULE - 1)
    return replace(descriptor, compute_pgm_rsrc1=rsrc1, compute_pgm_rsrc3=rsrc3)


def with_counts(metadata: Mapping[str, object], allocation: Allocation, declared: Allocation,
                use: RegisterUse) -> dict[str, object]:
    """A kernel's metadata with the register counts that changed, in the original key order."""
    changed: dict[str, object] = dict(metadata)
    if ".vgpr_count" in changed and (allocation.vgprs, allocation.accum_offset) != (
            declared.vgprs, declared.accum_offset):
        changed[".vgpr_count"] = allocation.vgprs
    if ".agpr_count" in changed and (allocation.vgprs, allocation.accum_offset) != (
            declared.vgprs, declared.accum_offset):
        changed[".agpr_count"] = use.agprs
    if ".sgpr_count" in changed and allocation.sgprs != declared.sgprs:
        changed[".sgpr_count"] = allocation.sgprs + EXTRA_SGPRS
    return changed


def _inserted(word: int, name: str, value: int) -> int:
    field = BY_NAME[name]
    return (word & ~field.mask) | (value << field.position)


def _ceil(value: int, granule: int) -> int:
    return -(-value // granule) * granule
