"""The launch ABI: what a wave finds in its registers, and where the kernarg segment lies.

Source: LLVM "User Guide for AMDGPU Backend", "Initial Kernel Execution State".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from asmevo.codeobject.container import Kernel
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.device.device import LaunchState, UnsupportedError, WorkgroupOrder
from asmevo.dispatch.dispatch import Dispatch

LDS_LIMIT = 65536
PRIVATE_LIMIT = 131072  # bytes a work-item: 8 MiB a wave (gfx9, COMPUTE_TMPRING_SIZE.WAVESIZE)
LDS_GRANULE = 512  # bytes; LDS is allocated in units of 128 dwords
_MAX_GUARD = 1 << 26  # bytes of host memory on each side of a region
_MAX_WORK_ITEMS = 1024  # of a workgroup
_ADDRESSES = 1 << 64
_KERNARG_FIRST = 0x0000_1000_0000_0000
_KERNARG_ALIGN = 4096
# Scalar loads of a kernarg tail are widened by compilers up to this many bytes.
_KERNARG_PAD = 64
# Where firmware that preloads kernel arguments enters a kernel: behind the code that loads them for
# firmware that does not (LLVM AMDGPUUsage, "Preloaded Kernel Arguments").
_PRELOAD_ENTRY = 256

# Values that a descriptor may ask for, in the order of their SGPRs, and their dwords.
_USER_SGPR_WORDS = {"dispatch_ptr": 2, "kernarg_segment_ptr": 2, "private_segment_size": 1}

# MODE bits above FP_ROUND and FP_DENORM, which are the descriptor's float mode (CDNA3 ISA, "Mode
# Register").
_DX10_CLAMP = 1 << 8
_IEEE = 1 << 9
_FP16_OVERFLOW = 1 << 23
_EXCEPTIONS = (
    "exception_fp_ieee_invalid_op", "exception_fp_denorm_src", "exception_fp_ieee_div_zero",
    "exception_fp_ieee_overflow", "exception_fp_ieee_underflow", "exception_fp_ieee_inexact",
    "exception_int_div_zero")


@dataclass(frozen=True, slots=True)
class RegisterLayout:
    """Registers a wave has and where the launch puts its values.

    ``user_sgprs`` names what the launch writes to s0 and up, a pair or a single register each;
    ``preload`` are the first dword and the number of dwords of the kernarg that follow them.
    ``workgroup_ids`` is the SGPR of each workgroup id or -1, ``work_item_dimensions`` how many of
    x, y, z are packed into v0, ``entry`` the offset of the first instruction.
    """

    vgprs: int
    agprs: int
    user_sgprs: tuple[str, ...]
    preload: tuple[int, int]
    workgroup_ids: tuple[int, int, int]
    work_item_dimensions: int
    private_bytes: int
    entry: int


def float_mode(descriptor: KernelDescriptor) -> int:
    """The MODE register at entry.

    Raises `UnsupportedError` for exceptions, which would call a trap handler.
    """
    for name in _EXCEPTIONS:
        if descriptor.field(f"enable_{name}"):
            raise UnsupportedError(f"the emulator does not model exceptions ({name})")
    return (descriptor.float_mode | _DX10_CLAMP * descriptor.dx10_clamp
            | _IEEE * descriptor.ieee_mode | _FP16_OVERFLOW * descriptor.fp16_overflow)


def register_layout(descriptor: KernelDescriptor) -> RegisterLayout:
    """Where launch values go. Raises `UnsupportedError` for those that are not modelled."""
    for name in ("queue_ptr", "dispatch_id", "workgroup_info"):
        if getattr(descriptor, f"enable_sgpr_{name}"):
            raise UnsupportedError(f"the emulator does not provide enable_sgpr_{name}")
    if descriptor.field("uses_dynamic_stack"):
        raise UnsupportedError("the emulator cannot size the private segment of a kernel with a "
                               "dynamic stack (uses_dynamic_stack)")
    if descriptor.private_segment_fixed_size > PRIVATE_LIMIT:
        raise UnsupportedError(f"the kernel needs {descriptor.private_segment_fixed_size} bytes of "
                               f"scratch a work-item, a wave has at most {PRIVATE_LIMIT}")
    names = tuple(name for name in _USER_SGPR_WORDS
                  if getattr(descriptor, f"enable_sgpr_{name}"))
    user = descriptor.user_sgpr_count
    preload = (descriptor.kernarg_preload_offset, descriptor.kernarg_preload_length)
    if user < sum(_USER_SGPR_WORDS[name] for name in names) + preload[1]:
        raise UnsupportedError("the descriptor's user_sgpr_count leaves no room for the values "
                               "that it asks for")
    if sum(preload) * 4 > descriptor.kernarg_size:
        raise UnsupportedError("the descriptor preloads more than its kernarg")
    ids: list[int] = []
    free = user
    for axis in "xyz":
        enabled = getattr(descriptor, f"enable_sgpr_workgroup_id_{axis}")
        ids.append(free if enabled else -1)
        free += bool(enabled)
    if descriptor.enable_vgpr_workitem_id > 2:
        raise UnsupportedError("enable_vgpr_workitem_id 3 is undefined")
    total = descriptor.next_free_vgpr
    vgprs = min(descriptor.accum_offset, total, 256)
    return RegisterLayout(
        vgprs, min(total - vgprs, 256), names, preload, (ids[0], ids[1], ids[2]),
        descriptor.enable_vgpr_workitem_id + 1, descriptor.private_segment_fixed_size,
        _PRELOAD_ENTRY if preload[1] else 0)


def user_sgprs(layout: RegisterLayout, kernarg: npt.NDArray[np.uint8],
               values: Mapping[str, int]) -> list[int]:
    """What s0 and up hold at entry; ``values`` has each named value, ``kernarg`` the segment."""
    found: list[int] = []
    for name in layout.user_sgprs:
        found += [values[name] >> 32 * k & 0xFFFFFFFF for k in range(_USER_SGPR_WORDS[name])]
    first, count = layout.preload
    if 4 * (first + count) > len(kernarg):
        raise UnsupportedError("the descriptor preloads more than its kernarg")
    found += (int(word) for word in kernarg[4 * first:4 * (first + count)].view(np.uint32))
    return found


def check_dispatch(kernel: Kernel, dispatch: Dispatch) -> None:
    """Raise `UnsupportedError` when a dispatch contradicts the kernel's metadata or the device."""
    if dispatch.kernel != kernel.symbol:
        raise UnsupportedError(f"dispatch '{dispatch.name}' launches '{dispatch.kernel}', not "
                               f"'{kernel.symbol}'")
    required = kernel.metadata.get(".reqd_workgroup_size")
    if isinstance(required, Sequence) and tuple(required) != dispatch.workgroup:
        raise UnsupportedError(f"'{kernel.symbol}' requires workgroups of {tuple(required)}, "
                               f"dispatch '{dispatch.name}' has {dispatch.workgroup}")
    x, y, z = dispatch.workgroup
    limit = kernel.metadata.get(".max_flat_workgroup_size")
    if isinstance(limit, int) and x * y * z > limit:
        raise UnsupportedError(f"'{kernel.symbol}' allows {limit} work-items a workgroup, dispatch "
                               f"'{dispatch.name}' has {x * y * z}")
    if min(x, y, z) < 1 or x * y * z > _MAX_WORK_ITEMS:
        raise UnsupportedError(f"a workgroup has 1 to {_MAX_WORK_ITEMS} work-items, dispatch "
                               f"'{dispatch.name}' has {dispatch.workgroup}")
    # The dispatch packet counts the work-items of each dimension with 32 bits.
    if any(g < 1 or g * w >= 1 << 32 for g, w in zip(dispatch.grid, (x, y, z), strict=True)):
        raise UnsupportedError(f"a grid has 1 to 2^32 - 1 work-items in each dimension, dispatch "
                               f"'{dispatch.name}' has {dispatch.grid} workgroups of {x, y, z}")
    for region in dispatch.regions:
        size = len(region.data) + 2 * region.guard
        if region.guard < 0 or region.base < 0 or region.base + size > _ADDRESSES:
            raise UnsupportedError(f"region '{region.name}' of dispatch '{dispatch.name}' leaves "
                                   f"the 64-bit address space")
        if region.guard > _MAX_GUARD:
            raise UnsupportedError(f"region '{region.name}' of dispatch '{dispatch.name}' has a "
                                   f"guard of {region.guard} bytes, more than {_MAX_GUARD}")


def lds_bytes(descriptor: KernelDescriptor, dispatch: Dispatch) -> int:
    """LDS a workgroup gets, in whole granules. Raises `UnsupportedError` above 64 KiB."""
    if dispatch.dynamic_lds < 0:
        raise UnsupportedError(f"dispatch '{dispatch.name}' has {dispatch.dynamic_lds} bytes of "
                               f"dynamic LDS")
    wanted = descriptor.group_segment_fixed_size + dispatch.dynamic_lds
    if wanted > LDS_LIMIT:
        raise UnsupportedError(f"dispatch '{dispatch.name}' needs {wanted} bytes of LDS, a "
                               f"workgroup has at most {LDS_LIMIT}")
    return -(-wanted // LDS_GRANULE) * LDS_GRANULE


def kernarg_segment(arguments: bytes, state: LaunchState) -> npt.NDArray[np.uint8]:
    """The kernarg bytes, padded with undefined bytes to a whole cache line."""
    size = -(-max(len(arguments), 1) // _KERNARG_PAD) * _KERNARG_PAD
    segment = np.random.default_rng(state.poison).integers(0, 256, size, dtype=np.uint8)
    segment[:len(arguments)] = np.frombuffer(arguments, dtype=np.uint8)
    return segment


def free_address(taken: Sequence[tuple[int, int]], size: int) -> int:
    """A place for ``size`` bytes below 2^47 that is clear of every (address, size) in ``taken``."""
    address = _KERNARG_FIRST
    for base, length in sorted(taken):
        if base < address + size and address < base + length:
            address = -(-(base + length) // _KERNARG_ALIGN) * _KERNARG_ALIGN
    if address + size > 1 << 47:
        raise UnsupportedError("no address below 2^47 is free for what a launch adds to memory")
    return address


def workgroup_order(dispatch: Dispatch, state: LaunchState) -> npt.NDArray[np.uint32]:
    """Linear workgroup ids in the order the launch runs them."""
    x, y, z = dispatch.grid
    count = x * y * z
    if min(dispatch.grid) < 1 or count > 1 << 26:
        raise UnsupportedError(f"the emulator runs 1 to 2^26 workgroups, dispatch "
                               f"'{dispatch.name}' has a grid of {dispatch.grid}")
    order = np.arange(count, dtype=np.uint32)
    match state.order:
        case WorkgroupOrder.ASCENDING:
            return order
        case WorkgroupOrder.DESCENDING:
            return np.ascontiguousarray(order[::-1])
        case WorkgroupOrder.SHUFFLED:
            return np.random.default_rng(state.poison).permutation(order)
