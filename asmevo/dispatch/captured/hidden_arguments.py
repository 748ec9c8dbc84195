"""What becomes of a captured kernarg's hidden arguments, which a runtime appended.

Some say how large the launch is; those are checked against it. Others are pointers into the process
that launched it: where they are not null, the kernel may use a service that a replay does not have.

Source: LLVM "User Guide for AMDGPU Backend", "Code Object V5 Metadata", ``.value_kind``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from asmevo.dispatch.captured.capture import Capture
from asmevo.dispatch.captured.errors import CaptureError

_PREFIX = "hidden_"
_AXES = "xyz"
# Pointers to what only the runtime of the captured process can do.
_SERVICES: Mapping[str, str] = {
    "hidden_printf_buffer": "printf",
    "hidden_hostcall_buffer": "calls of the host",
    "hidden_default_queue": "enqueuing kernels from the device",
    "hidden_completion_action": "enqueuing kernels from the device",
    "hidden_multigrid_sync_arg": "synchronising several devices",
    "hidden_heap_v1": "a heap on the device",
    "hidden_queue_ptr": "its queue",
}
# Addresses that a device chooses anew: null, so that it fills in its own.
_REBUILT = frozenset({"hidden_private_base", "hidden_shared_base", "hidden_none"})


def replayable_kernarg(capture: Capture, metadata: Mapping[str, Any]) -> bytes:
    """The kernarg of a replay. Raises `CaptureError` naming the argument that has no replay."""
    kernarg = bytearray(capture.kernarg)
    for offset, size, kind in _hidden(metadata):
        place = slice(offset, offset + size)
        value = int.from_bytes(kernarg[place], "little")
        # Null or left out, it says nothing: a device fills in what it can.
        if value == 0:
            continue
        if kind in _REBUILT:
            kernarg[place] = bytes(len(kernarg[place]))
        elif service := _SERVICES.get(kind):
            raise CaptureError(f"capture '{capture.name}' has a pointer for {service} ('{kind}') "
                               f"into the process it was made in, which no replay can provide")
        elif (expected := _expected(capture, kind)) is None:
            raise CaptureError(f"capture '{capture.name}' has the hidden argument '{kind}', of "
                               "which it is not known how to replay it")
        elif value != expected:
            raise CaptureError(f"capture '{capture.name}' has {value} as '{kind}', but its launch "
                               f"means {expected}")
    return bytes(kernarg)


def _hidden(metadata: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    arguments = metadata.get(".args")
    for argument in arguments if isinstance(arguments, list) else ():
        if not isinstance(argument, dict):
            continue
        offset, size = argument.get(".offset"), argument.get(".size")
        kind = argument.get(".value_kind")
        if isinstance(kind, str) and kind.startswith(_PREFIX) and isinstance(offset, int) \
                and isinstance(size, int) and offset >= 0 and size > 0:
            yield offset, size, kind


def _expected(capture: Capture, kind: str) -> int | None:
    """What a launch of whole workgroups that starts at 0 passes."""
    name, _, axis = kind.removeprefix(_PREFIX).rpartition("_")
    if len(axis) == 1 and axis in _AXES:
        grid, size = capture.grid[_AXES.index(axis)], capture.workgroup[_AXES.index(axis)]
        return {"block_count": grid // size, "group_size": size, "remainder": grid % size,
                "global_offset": 0}.get(name)
    match kind:
        case "hidden_grid_dims":
            return max((i + 1 for i, size in enumerate(capture.grid) if size > 1), default=1)
        case "hidden_dynamic_lds_size":
            return capture.dynamic_lds
    return None
