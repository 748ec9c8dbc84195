"""What an edited kernel's descriptor and metadata must declare, and how they come to say so."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from asmevo.codeobject.assembly import Assembly, KernelBody
from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.disassemble import rows
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.functions import code_of, functions
from asmevo.codeobject.metadata import metadata_yaml
from asmevo.codeobject.occupancy import compute_unit
from asmevo.codeobject.resource_change import Resources
from asmevo.codeobject.resources import (
    ARCHITECTED_FLAT_SCRATCH,
    Allocation,
    RegisterUse,
    counts,
    register_use,
    required_allocation,
    with_allocation,
    with_counts,
)
from asmevo.codeobject.segments import Reach, SegmentUse, segment_use

_CALL = re.compile(r"s_(?:swappc|setpc|call)_b64")
_SGPR_LIMIT = 102
# Scratch of a wave is allocated in 1 KiB units and at most 8191 of them
# (LLVM AMDGPUUsage, COMPUTE_TMPRING_SIZE.WAVESIZE): 131056 bytes a work-item.
_SCRATCH_LIMIT = 8191 * 1024 // 64


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the caller says of a rebuilt kernel's resources; `None` freezes a size.

    ``lds_bytes`` is the static LDS of a workgroup, ``scratch_bytes`` the scratch of a work-item.
    """

    allow_lower: bool = False
    lds_bytes: int | None = None
    scratch_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CodeUse:
    """Registers and memory segments that a kernel's code uses."""

    registers: RegisterUse
    segments: SegmentUse


@functools.lru_cache(maxsize=8)
def code_use(code_object: CodeObject, kernel: Kernel) -> CodeUse:
    """Scan a kernel, and the object's device functions with it when it calls any.

    Which function a call reaches is not followed: all of them count.
    """
    listing = rows(code_object.code(kernel), code_object.target)
    registers, segments = register_use(listing), segment_use(listing, kernel.descriptor)
    if any(_CALL.match(text) for _, _, text in listing):
        for function in functions(code_object):
            if function.kernel is None:
                called = rows(code_of(code_object, function), code_object.target)
                registers |= register_use(called)
                segments |= segment_use(called, kernel.descriptor)
    return CodeUse(registers, segments)


def required_kernel(original: CodeObject, kernel: Kernel, result: CodeObject,
                    declaration: Declaration) -> Kernel:
    """The original kernel with the descriptor and metadata that the edited code needs.

    ``result`` holds the edited code. Raises `RebuildError` when it does not fit the hardware, its
    largest workgroup no longer fits on a compute unit, or it reaches beyond LDS or scratch sizes
    that are frozen or declared.
    """
    before = code_use(original, kernel)
    after = code_use(result, result.kernel(kernel.symbol))
    descriptor, metadata = kernel.descriptor, dict(kernel.metadata)
    if declaration.allow_lower or not after.registers.within(before.registers):
        allocation = required_allocation(descriptor, after.registers, original.target,
                                         allow_lower=declaration.allow_lower)
        descriptor = with_allocation(descriptor, allocation)
        needed = counts(after.registers, original.target, allocation.accum_offset)
        metadata = with_counts(metadata, needed, allow_lower=declaration.allow_lower)
    lds = _size(".group_segment_fixed_size", declaration.lds_bytes, metadata,
                descriptor.group_segment_fixed_size, declaration.allow_lower,
                compute_unit(original.target.isa).lds_bytes)
    scratch = _size(".private_segment_fixed_size", declaration.scratch_bytes, metadata,
                    descriptor.private_segment_fixed_size, declaration.allow_lower, _SCRATCH_LIMIT)
    if lds is not None:
        descriptor = replace(descriptor, group_segment_fixed_size=lds)
    if scratch is not None:
        descriptor = _with_scratch(descriptor, original.target.isa, scratch)
    check_segments(descriptor, before.segments, after.segments,
                   lds_declared=lds is not None, scratch_declared=scratch is not None)
    changed = replace(kernel, descriptor=descriptor, metadata=metadata)
    if descriptor != kernel.descriptor:
        _check_launch(Resources.of(kernel, original.target),
                      Resources.of(changed, original.target), kernel.symbol)
    return changed


def _check_launch(before: Resources, after: Resources, symbol: str) -> None:
    """Refuse a kernel whose largest workgroup no compute unit can hold any more.

    The host may launch it, and the launch fails.
    """
    if before.occupancy.workgroups_per_cu and not after.occupancy.workgroups_per_cu:
        scarce = " and ".join(after.occupancy.limited_by)
        raise RebuildError(
            f"a workgroup of {after.workgroup_size} work-items, which '{symbol}' may be launched "
            f"with, does not fit on a compute unit when each wave takes {after.vgprs} VGPRs and "
            f"{after.sgprs} SGPRs, for want of {scarce}; it takes {before.vgprs} and "
            f"{before.sgprs} in the original")


def check_segments(descriptor: KernelDescriptor, before: SegmentUse, after: SegmentUse, *,
                   lds_declared: bool = False, scratch_declared: bool = False) -> None:
    """Refuse code that reaches beyond what its descriptor declares, unless the original does.

    A kernel that declares no LDS but uses it gets its LDS from the launch, whose size is not
    known here; the same holds for scratch with a dynamic stack. Raises `RebuildError`.
    """
    group = descriptor.group_segment_fixed_size
    if group or lds_declared or not before.group.used:
        _check_reach("LDS", before.group, after.group, group, lds_declared)
    if not descriptor.field("uses_dynamic_stack"):
        _check_reach("scratch", before.private, after.private,
                     descriptor.private_segment_fixed_size, scratch_declared)


def _check_reach(name: str, before: Reach, after: Reach, size: int, declared: bool) -> None:
    if after.used and not size and not before.used:
        raise RebuildError(f"the edit uses {name}, of which the kernel declares none")
    proven = size if declared else max(size, before.proven)
    likely = size if declared else max(size, before.likely)
    if after.proven > proven:
        raise RebuildError(f"the kernel reaches byte {after.proven} of {name} and declares {size}")
    if after.likely > likely:
        raise RebuildError(f"the kernel reaches byte {after.likely} of {name} or beyond and "
                           f"declares {size}")


def _size(key: str, wanted: int | None, metadata: dict[str, object], before: int,
          allow_lower: bool, limit: int) -> int | None:
    if wanted is None:
        return None
    name = key.removeprefix(".").removesuffix("_fixed_size").replace("_", " ")
    if not 0 <= wanted <= limit:
        raise RebuildError(f"the {name} can have 0 to {limit} bytes, not {wanted}")
    if wanted < before and not allow_lower:
        raise RebuildError(f"the {name} has {before} bytes; {wanted} need leave to "
                           "lower it (allow_lower, as a setting task.allow_lower=true)")
    if not isinstance(metadata.get(key), int):
        raise RebuildError(f"the metadata has no '{key}' to change")
    metadata[key] = wanted
    return wanted


def _with_scratch(descriptor: KernelDescriptor, isa: str, size: int) -> KernelDescriptor:
    if size and not descriptor.enable_private_segment:
        if isa not in ARCHITECTED_FLAT_SCRATCH:
            raise RebuildError(f"scratch cannot be added to a {isa} kernel: its setup takes SGPRs "
                               "that the launch fills")
        descriptor = replace(descriptor, compute_pgm_rsrc2=descriptor.compute_pgm_rsrc2 | 1)
    return replace(descriptor, private_segment_fixed_size=size)


def with_resources(assembly: Assembly, original: CodeObject, before: Kernel,
                   after: Kernel) -> Assembly:
    """The assembly with one kernel's resource directives and metadata rewritten."""
    blocks = list(assembly.blocks)
    if before.descriptor != after.descriptor:
        at, start, stop = _span(blocks, f"\t.amdhsa_kernel {before.symbol}\n",
                                "\t.end_amdhsa_kernel\n")
        text = blocks[at]
        assert isinstance(text, str)
        blocks[at] = text[:start] + _directives(text[start:stop], before, after) + text[stop:]
    if before.metadata != after.metadata:
        at, start, stop = _span(blocks, "\t.amdgpu_metadata\n", "\t.end_amdgpu_metadata\n")
        text = blocks[at]
        assert isinstance(text, str)
        blocks[at] = text[:start] + metadata_yaml(_metadata(original, after)) + text[stop:]
    return replace(assembly, blocks=tuple(blocks))


def _span(blocks: Sequence[str | KernelBody], opening: str, closing: str) -> tuple[int, int, int]:
    for at, block in enumerate(blocks):
        if isinstance(block, str) and opening in block:
            start = block.index(opening) + len(opening)
            stop = block.find(closing, start)
            if stop >= 0:
                return at, start, stop
    raise RebuildError(f"the assembly has no '{opening.strip()}' to change")


def _directives(text: str, before: Kernel, after: Kernel) -> str:
    old, new = Allocation.of(before.descriptor), Allocation.of(after.descriptor)
    values = {
        "group_segment_fixed_size": after.descriptor.group_segment_fixed_size,
        "private_segment_fixed_size": after.descriptor.private_segment_fixed_size,
        "enable_private_segment": int(after.descriptor.enable_private_segment),
        "next_free_vgpr": new.vgprs,
        "accum_offset": new.accum_offset,
    }
    changed = ["group_segment_fixed_size", "private_segment_fixed_size"]
    if before.descriptor.enable_private_segment != after.descriptor.enable_private_segment:
        changed.append("enable_private_segment")
    if old != new:
        changed += ["next_free_vgpr", "accum_offset", "next_free_sgpr"]
    for name in changed:
        pattern = re.compile(rf"(\.amdhsa_{name} )(\d+)$", re.MULTILINE)
        match = pattern.search(text)
        if match is None:
            raise RebuildError(f"the descriptor of '{before.symbol}' has no '.amdhsa_{name}' to "
                               "change")
        value = values.get(name)
        if value is None:
            # The directive leaves out the extra SGPRs, which are as many as before.
            value = min(max(int(match[2]) + new.sgprs - old.sgprs, 0), _SGPR_LIMIT)
        text = text[:match.start()] + f"{match[1]}{value}" + text[match.end():]
    return text


def _metadata(original: CodeObject, kernel: Kernel) -> dict[str, object]:
    handle = f"{kernel.symbol}.kd"
    changed: dict[str, object] = {}
    for key, value in original.metadata.items():
        if key == "amdhsa.kernels" and isinstance(value, list):
            changed[key] = [kernel.metadata if isinstance(entry, Mapping)
                            and entry.get(".symbol") == handle else entry for entry in value]
        else:
            changed[key] = value
    return changed
