"""The AQL kernel dispatch packet, to which ``enable_sgpr_dispatch_ptr`` points.

Source: HSA Runtime Programmer's Reference Manual, ``hsa_kernel_dispatch_packet_t``.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from asmevo.device.device import LaunchState
from asmevo.device.emulator.hidden_arguments import grid_dimensions
from asmevo.dispatch.dispatch import Dispatch

# Header, setup, workgroup sizes, reserved, grid sizes in work-items, private and group segment
# sizes, kernel object, kernarg address, reserved, completion signal.
_LAYOUT = struct.Struct("<6H5I4Q")
_KERNEL_DISPATCH = 2
_FENCES = 2 << 9 | 2 << 11  # acquire and release at system scope
PACKET_BYTES = _LAYOUT.size


def dispatch_packet(dispatch: Dispatch, state: LaunchState, *, private_bytes: int, lds_bytes: int,
                    kernarg: int) -> npt.NDArray[np.uint8]:
    """The packet of a launch. Handles that mean nothing here hold undefined bytes."""
    x, y, z = (g * w for g, w in zip(dispatch.grid, dispatch.workgroup, strict=True))
    code, signal = np.random.default_rng([state.poison, 1]).integers(0, 1 << 63, 2)
    packet = _LAYOUT.pack(
        _KERNEL_DISPATCH | _FENCES, grid_dimensions(dispatch), *dispatch.workgroup, 0, x, y, z,
        private_bytes, lds_bytes, int(code), kernarg, 0, int(signal))
    return np.frombuffer(bytearray(packet), dtype=np.uint8)
