"""Kernel arguments that the runtime appends: block counts, group sizes and the like.

Source: LLVM "User Guide for AMDGPU Backend", "Code Object V5 Metadata", ``.value_kind``.
"""

from __future__ import annotations

import asmevo_core as core

from asmevo.codeobject.container import Argument, Kernel
from asmevo.device.device import UnsupportedError
from asmevo.dispatch.dispatch import Dispatch

_PREFIX = "hidden_"
_AXES = "xyz"
# Services of a runtime that are absent here: a null pointer is what a launch without them passes.
_NULL = frozenset({
    "hidden_none", "hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_default_queue",
    "hidden_completion_action", "hidden_multigrid_sync_arg", "hidden_heap_v1"})
_POINTER_TO_LDS = "dynamic_shared_pointer"
_MAX_BYTES = 1 << 20


def with_hidden_arguments(kernel: Kernel, dispatch: Dispatch) -> bytes:
    """The kernarg segment of a dispatch, its hidden arguments filled in from the metadata.

    A dispatch may declare only the explicit arguments. What it declares stays as it is: only hidden
    arguments whose bytes are all zero are filled. Raises `UnsupportedError` for a kernarg of the
    wrong size and for a hidden argument that the emulator cannot give.
    """
    if kernel.kernarg_segment_size > _MAX_BYTES:
        raise UnsupportedError(f"'{kernel.symbol}' takes {kernel.kernarg_segment_size} bytes of "
                               f"kernarg, the emulator gives at most {_MAX_BYTES}")
    declared = len(dispatch.kernarg)
    first = min((a.offset for a in kernel.arguments if a.value_kind.startswith(_PREFIX)),
                default=kernel.kernarg_segment_size)
    if declared != kernel.kernarg_segment_size and not (
            first <= declared < kernel.kernarg_segment_size):
        raise UnsupportedError(
            f"'{kernel.symbol}' takes {kernel.kernarg_segment_size} bytes of kernarg, dispatch "
            f"'{dispatch.name}' has {declared}")
    segment = bytearray(dispatch.kernarg.ljust(kernel.kernarg_segment_size, b"\0"))
    to_lds = sum(a.value_kind == _POINTER_TO_LDS for a in kernel.arguments)
    for argument in kernel.arguments:
        place = slice(argument.offset, argument.offset + argument.size)
        if argument.offset + argument.size > len(segment) or any(segment[place]):
            continue
        if argument.value_kind == _POINTER_TO_LDS and to_lds == 1:
            # Dynamic LDS follows the static part.
            value = -(-kernel.descriptor.group_segment_fixed_size // 16) * 16
        elif argument.value_kind.startswith(_PREFIX):
            value = _value(kernel, argument, dispatch)
        else:
            continue
        if value >= 1 << 8 * argument.size:
            raise UnsupportedError(
                f"argument '{argument.value_kind}' of '{kernel.symbol}' has {argument.size} bytes, "
                f"too few for {value}")
        segment[place] = value.to_bytes(argument.size, "little")
    return bytes(segment)


def _value(kernel: Kernel, argument: Argument, dispatch: Dispatch) -> int:
    kind = argument.value_kind
    if kind in _NULL:
        return 0
    name, _, axis = kind.removeprefix(_PREFIX).rpartition("_")
    if axis in _AXES:
        dimension = _AXES.index(axis)
        match name:
            case "block_count":
                return dispatch.grid[dimension]
            case "group_size":
                return dispatch.workgroup[dimension]
            case "remainder" | "global_offset":
                return 0  # a dispatch has whole workgroups and starts at 0
    match kind:
        case "hidden_grid_dims":
            return grid_dimensions(dispatch)
        case "hidden_dynamic_lds_size":
            return dispatch.dynamic_lds
        case "hidden_private_base":
            return core.PRIVATE_APERTURE >> 32
        case "hidden_shared_base":
            return core.SHARED_APERTURE >> 32
    raise UnsupportedError(f"the emulator does not provide argument '{kind}' of '{kernel.symbol}'")


def grid_dimensions(dispatch: Dispatch) -> int:
    """How many dimensions the grid has: trailing ones of one work-item do not count."""
    sizes = [g * w for g, w in zip(dispatch.grid, dispatch.workgroup, strict=True)]
    return max((i + 1 for i, size in enumerate(sizes) if size > 1), default=1)
