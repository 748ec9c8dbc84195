"""What a dispatch's regions hold before each of its launches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from asmevo.dispatch.dispatch import Dispatch, Region

_LARGE_BYTES = 64 << 20

Bytes = npt.NDArray[np.uint8]


class MappedRegions:
    """The regions of a dispatch before a launch, and buffers for those that a launch may write."""

    def __init__(self, dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.initial = tuple(map(_initial, dispatch.regions))
        self._spare: list[tuple[Bytes, ...]] = []

    def take_buffers(self) -> tuple[Bytes, ...]:
        """A buffer a region; those of written regions are the caller's until it gives them back."""
        written = [region.role.written for region in self.dispatch.regions]
        try:
            buffers = self._spare.pop()  # at once, so that two threads never have the same
        except IndexError:
            return tuple(array.copy() if writable else array
                         for array, writable in zip(self.initial, written, strict=True))
        for buffer, array, writable in zip(buffers, self.initial, written, strict=True):
            if writable:
                np.copyto(buffer, array)
        return buffers

    def give_back(self, buffers: tuple[Bytes, ...]) -> None:
        self._spare.append(buffers)


def _initial(region: Region) -> Bytes:
    if len(region.data) > _LARGE_BYTES and not region.role.written:
        # Gigabytes of input are not worth a second copy.
        array = np.frombuffer(region.mapped, np.uint8)
    else:
        # NumPy asks for huge pages for what it allocates, which a stream of loads is faster on.
        front, back = region.guards
        array = np.empty(len(front) + len(region.data) + len(back), np.uint8)
        start = 0
        for part in (front, region.data, back):
            array[start:start + len(part)] = np.frombuffer(part, np.uint8)
            start += len(part)
    array.flags.writeable = False
    return array
