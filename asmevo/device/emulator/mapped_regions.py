"""What a dispatch's regions hold before each of its launches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from asmevo.dispatch.dispatch import Dispatch

_LARGE_BYTES = 64 << 20

Bytes = npt.NDArray[np.uint8]


class MappedRegions:
    """The regions of a dispatch before a launch, and buffers for those that a launch may write."""

    def __init__(self, dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self.before = tuple(region.mapped for region in dispatch.regions)
        # NumPy asks for huge pages for what it allocates, which a stream of loads is faster on;
        # gigabytes of input are not worth a second copy.
        self.initial = tuple(
            array if len(array) > _LARGE_BYTES and not region.role.written else array.copy()
            for region, array in zip(dispatch.regions, (np.frombuffer(mapped, np.uint8)
                                                        for mapped in self.before), strict=True))
        for array in self.initial:
            array.flags.writeable = False
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
