"""The launch ABI: what a wave finds in its registers, and where the kernarg segment lies.

Source: LLVM "User Guide for AMDGPU Backend", "Initial Kernel Execution State".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from asmevo.codeobject.container import Kernel
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.device.device import LaunchState, UnsupportedError, WorkgroupOrder
from asmevo.dispatch.dispatch import Dispatch, Region

LDS_LIMIT = 65536
LDS_GRANULE = 512  # bytes; LDS is allocated in units of 128 dwords
_KERNARG_FIRST = 0x0000_1000_0000_0000
_KERNARG_ALIGN = 4096
# Scalar loads of a kernarg tail are widened by compilers up to this many bytes.
_KERNARG_PAD = 64

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

    ``kernarg`` is the first SGPR of the kernarg pointer or -1, ``workgroup_ids`` the SGPR of each
    workgroup id or -1, ``work_item_dimensions`` how many of x, y, z are packed into v0.
    """

    vgprs: int
    agprs: int
    user_sgprs: int
    kernarg: int
    workgroup_ids: tuple[int, int, int]
    work_item_dimensions: int


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
    for name in ("dispatch_ptr", "queue_ptr", "dispatch_id", "private_segment_size"):
        if getattr(descriptor, f"enable_sgpr_{name}"):
            raise UnsupportedError(f"the emulator does not provide enable_sgpr_{name}")
    if descriptor.enable_private_segment or descriptor.private_segment_fixed_size:
        raise UnsupportedError("the emulator has no private segment (scratch memory)")
    if descriptor.enable_sgpr_workgroup_info:
        raise UnsupportedError("the emulator does not provide enable_sgpr_workgroup_info")
    if descriptor.kernarg_preload_length:
        raise UnsupportedError("the emulator does not preload the kernarg segment")
    user = descriptor.user_sgpr_count
    kernarg = 0 if descriptor.enable_sgpr_kernarg_segment_ptr else -1
    if user < (2 if kernarg == 0 else 0):
        raise UnsupportedError("the descriptor's user_sgpr_count leaves no room for the kernarg "
                               "pointer")
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
    return RegisterLayout(vgprs, min(total - vgprs, 256), user, kernarg, (ids[0], ids[1], ids[2]),
                          descriptor.enable_vgpr_workitem_id + 1)


def check_dispatch(kernel: Kernel, dispatch: Dispatch) -> None:
    """Raise `UnsupportedError` when a dispatch contradicts the kernel's metadata."""
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
    if len(dispatch.kernarg) != kernel.kernarg_segment_size:
        raise UnsupportedError(f"'{kernel.symbol}' takes {kernel.kernarg_segment_size} bytes of "
                               f"kernarg, dispatch '{dispatch.name}' has {len(dispatch.kernarg)}")


def lds_bytes(descriptor: KernelDescriptor, dispatch: Dispatch) -> int:
    """LDS a workgroup gets, in whole granules. Raises `UnsupportedError` above 64 KiB."""
    wanted = descriptor.group_segment_fixed_size + dispatch.dynamic_lds
    if wanted > LDS_LIMIT:
        raise UnsupportedError(f"dispatch '{dispatch.name}' needs {wanted} bytes of LDS, a "
                               f"workgroup has at most {LDS_LIMIT}")
    return -(-wanted // LDS_GRANULE) * LDS_GRANULE


def kernarg_segment(dispatch: Dispatch, state: LaunchState) -> npt.NDArray[np.uint8]:
    """The kernarg bytes, padded with undefined bytes to a whole cache line."""
    size = -(-max(len(dispatch.kernarg), 1) // _KERNARG_PAD) * _KERNARG_PAD
    segment = np.random.default_rng(state.poison).integers(0, 256, size, dtype=np.uint8)
    segment[:len(dispatch.kernarg)] = np.frombuffer(dispatch.kernarg, dtype=np.uint8)
    return segment


def kernarg_address(regions: Sequence[Region], size: int) -> int:
    """A place for the kernarg segment, below 2^47 and clear of every region."""
    address = _KERNARG_FIRST
    for region in sorted(regions, key=lambda r: r.base):
        end = region.base + len(region.data) + 2 * region.guard
        if region.base < address + size and address < end:
            address = -(-end // _KERNARG_ALIGN) * _KERNARG_ALIGN
    if address + size > 1 << 47:
        raise UnsupportedError("no address below 2^47 is free for the kernarg segment")
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
