"""Registers that machine code uses, and the allocation that covers them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from asmevo.codeobject.descriptor import (
    ACCUM_GRANULE,
    SGPR_GRANULE,
    VGPR_GRANULE,
    VGPR_LIMIT,
    KernelDescriptor,
)
from asmevo.codeobject.descriptor_fields import BY_NAME
from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.target import Feature, Target

_REGISTER = re.compile(r"(?<![\w.])([vsa])(?:(\d+)|\[(?:\d+:)?(\d+)\])(?![\w:])")
_INDIRECT = re.compile(r"s_set_gpr_idx_|v_movrel|s_movrel")
# Forms that read VCC without naming it.
_IMPLICIT_VCC = re.compile(r"v_div_fmas_|v_cndmask_b32_(?:dpp|sdwa)")
_ACCUM_LIMIT = 256

# Processors whose flat scratch address is set up by the hardware and takes no user SGPRs; their
# waves always have the six extra SGPRs (LLVM AMDGPUBaseInfo, getNumExtraSGPRs).
ARCHITECTED_FLAT_SCRATCH = frozenset({"gfx940", "gfx941", "gfx942", "gfx950"})
_VCC_SGPRS, _XNACK_SGPRS, _FLAT_SCRATCH_SGPRS = 2, 4, 6


@dataclass(frozen=True, slots=True)
class RegisterUse:
    """One more than the highest register number used of each file.

    ``vcc``, ``flat_scratch`` and ``xnack_mask`` say that the named registers are used, which lie
    behind the numbered SGPRs. ``indirect`` says that registers are also addressed through M0, so
    that the numbers are lower bounds.
    """

    vgprs: int
    agprs: int
    sgprs: int
    vcc: bool = False
    flat_scratch: bool = False
    xnack_mask: bool = False
    indirect: bool = False

    def __or__(self, other: RegisterUse) -> RegisterUse:
        """The use of code that contains both."""
        return RegisterUse(*(max(getattr(self, f.name), getattr(other, f.name))
                             for f in fields(RegisterUse)))

    def within(self, other: RegisterUse) -> bool:
        """Whether code of the other use may do all that this one does."""
        return self | other == other


@dataclass(frozen=True, slots=True)
class Allocation:
    """Registers that a descriptor allocates to a wave.

    ``vgprs`` counts the unified file, AGPRs included, and ``sgprs`` includes VCC and the other
    extra SGPRs; both are multiples of 8.
    """

    vgprs: int
    accum_offset: int
    sgprs: int

    @classmethod
    def of(cls, descriptor: KernelDescriptor) -> Allocation:
        return cls(
            (descriptor.field("granulated_workitem_vgpr_count") + 1) * VGPR_GRANULE,
            (descriptor.field("accum_offset") + 1) * ACCUM_GRANULE,
            (descriptor.field("granulated_wavefront_sgpr_count") + 1) * SGPR_GRANULE,
        )


@dataclass(frozen=True, slots=True)
class Counts:
    """Register counts as the metadata states them: not rounded to what is allocated.

    LLVM's convention (AMDGPUAsmPrinter): ``vgprs`` counts the unified file with AGPRs behind a
    multiple of 4, ``sgprs`` includes the extra registers.
    """

    vgprs: int
    agprs: int
    sgprs: int


def register_use(listing: Iterable[Row]) -> RegisterUse:
    """Scan disassembled text, which names every numbered register an instruction touches."""
    uses = {_use_of(row[2]) for row in listing}
    if not uses:
        return RegisterUse(0, 0, 0)
    vgprs, agprs, sgprs, *named = (max(column) for column in zip(*uses, strict=True))
    return RegisterUse(vgprs, agprs, sgprs, *map(bool, named))


@functools.lru_cache(maxsize=1 << 16)
def _use_of(text: str) -> tuple[int, int, int, bool, bool, bool, bool]:
    """The fields of `RegisterUse` for one instruction."""
    highest = {"v": 0, "a": 0, "s": 0}
    for file, single, last in _REGISTER.findall(text):
        highest[file] = max(highest[file], int(single or last) + 1)
    return (highest["v"], highest["a"], highest["s"],
            "vcc" in text or _IMPLICIT_VCC.match(text) is not None,
            "flat_scratch" in text, "xnack_mask" in text, _INDIRECT.match(text) is not None)


def hardware_sgprs(descriptor: KernelDescriptor) -> int:
    """SGPRs that the hardware fills before the first instruction.

    LLVM "User Guide for AMDGPU Backend", section "Initial Kernel Execution State".
    """
    system = sum(descriptor.field(f"enable_sgpr_workgroup_{name}")
                 for name in ("id_x", "id_y", "id_z", "info"))
    return descriptor.user_sgpr_count + system


def extra_sgprs(target: Target, use: RegisterUse) -> int:
    """SGPRs behind the numbered ones: VCC, XNACK_MASK and FLAT_SCRATCH, in that order from the end.

    A wave has XNACK_MASK whenever it may run with XNACK on, whatever the code names.
    """
    if target.isa in ARCHITECTED_FLAT_SCRATCH or use.flat_scratch:
        return _FLAT_SCRATCH_SGPRS
    if use.xnack_mask or target.xnack in (Feature.ON, Feature.ANY):
        return _XNACK_SGPRS
    return _VCC_SGPRS if use.vcc else 0


def counts(use: RegisterUse, target: Target, accum_offset: int = ACCUM_GRANULE) -> Counts:
    """What the metadata says of code with this use; AGPRs start at ``accum_offset`` or later.

    LLVM leaves out the granule in front of the AGPRs when no VGPR is used at all, although the
    smallest `accum_offset` is one granule.
    """
    start = max(_ceil(use.vgprs, ACCUM_GRANULE), accum_offset)
    return Counts(start + use.agprs if use.agprs else use.vgprs, use.agprs,
                  use.sgprs + extra_sgprs(target, use))


def required_allocation(descriptor: KernelDescriptor, use: RegisterUse, target: Target, *,
                        allow_lower: bool = False) -> Allocation:
    """The allocation for ``use``: what the descriptor declares unless the code needs more.

    With ``allow_lower`` it is the least that covers the code. Raises `RebuildError` when the
    registers do not fit the hardware, or lowering is asked for code with indirect registers.
    """
    if allow_lower and use.indirect:
        raise RebuildError("the register allocation cannot be lowered: the kernel addresses "
                           "registers through M0")
    least = Allocation(VGPR_GRANULE, ACCUM_GRANULE, SGPR_GRANULE)
    floor = least if allow_lower else Allocation.of(descriptor)
    accum_offset = floor.accum_offset
    if use.agprs or allow_lower:
        accum_offset = max(accum_offset, _ceil(use.vgprs, ACCUM_GRANULE))
    vgprs = max(use.vgprs, accum_offset + use.agprs if use.agprs else accum_offset)
    if accum_offset > _ACCUM_LIMIT or vgprs > VGPR_LIMIT:
        raise RebuildError(f"the kernel uses {use.vgprs} VGPRs and {use.agprs} AGPRs, more than "
                           f"the {VGPR_LIMIT} that a wave can have")
    # Registers that only the hardware writes must be the wave's own, but may lie where VCC and its
    # neighbours do.
    sgprs = max(counts(use, target).sgprs, hardware_sgprs(descriptor))
    return Allocation(
        max(floor.vgprs, _ceil(vgprs, VGPR_GRANULE)),
        accum_offset,
        max(floor.sgprs, _ceil(sgprs, SGPR_GRANULE)),
    )


def with_allocation(descriptor: KernelDescriptor, allocation: Allocation) -> KernelDescriptor:
    """The descriptor with other register counts and nothing else changed."""
    rsrc1 = _inserted(descriptor.compute_pgm_rsrc1, "granulated_workitem_vgpr_count",
                      _ceil(allocation.vgprs, VGPR_GRANULE) // VGPR_GRANULE - 1)
    rsrc1 = _inserted(rsrc1, "granulated_wavefront_sgpr_count",
                      _ceil(allocation.sgprs, SGPR_GRANULE) // SGPR_GRANULE - 1)
    rsrc3 = _inserted(descriptor.compute_pgm_rsrc3, "accum_offset",
                      allocation.accum_offset // ACCUM_GRANULE - 1)
    return replace(descriptor, compute_pgm_rsrc1=rsrc1, compute_pgm_rsrc3=rsrc3)


def with_counts(metadata: Mapping[str, object], needed: Counts, *,
                allow_lower: bool = False) -> dict[str, object]:
    """A kernel's metadata with register counts that cover ``needed``, in the original key order.

    Counts that are high enough stay unless ``allow_lower``; keys that the original lacks are not
    added.
    """
    changed: dict[str, object] = dict(metadata)
    for key, value in ((".vgpr_count", needed.vgprs), (".agpr_count", needed.agprs),
                       (".sgpr_count", needed.sgprs)):
        before = changed.get(key)
        if isinstance(before, int) and (allow_lower or value > before):
            changed[key] = value
    return changed


def _inserted(word: int, name: str, value: int) -> int:
    field = BY_NAME[name]
    return (word & ~field.mask) | (value << field.position)


def _ceil(value: int, granule: int) -> int:
    return -(-value // granule) * granule
