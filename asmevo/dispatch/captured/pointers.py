"""Which bytes of a capture are device addresses."""

from __future__ import annotations

import numpy as np

from asmevo.dispatch.captured.capture import Allocation, Capture, PointerField

_MAX_POINTERS = 1 << 20


def find_pointers(capture: Capture) -> tuple[PointerField, ...] | None:
    """Every aligned 8-byte value of kernarg and memory that lies in an allocation.

    Data may look like a pointer, and a pointer may be kept in another form, such as a buffer
    descriptor's 48 bits: only a replay at other addresses shows that these are the right ones.
    ``None`` for more than anyone could have meant.
    """
    allocations = sorted(enumerate(capture.allocations), key=lambda item: item[1].address)
    found = [PointerField(offset, target)
             for offset, target in _addresses(capture.kernarg, allocations)]
    for index, allocation in enumerate(capture.allocations):
        for segment in allocation.segments:
            # Pointers are aligned in memory, whatever the segment's own start is.
            lead = -(allocation.address + segment.offset) % 8
            found += [PointerField(segment.offset + lead + offset, target, index)
                      for offset, target in _addresses(segment.pre[lead:], allocations)]
            if len(found) > _MAX_POINTERS:
                return None
    return tuple(found)


def _addresses(data: bytes, allocations: list[tuple[int, Allocation]]) -> list[tuple[int, int]]:
    """(offset, allocation) of the values of ``data`` that lie in an allocation."""
    values = np.frombuffer(data, np.dtype("<u8"), count=len(data) // 8)
    if not len(values) or not allocations:
        return []
    starts = np.array([a.address for _, a in allocations], np.uint64)
    ends = np.array([a.end for _, a in allocations], np.uint64)
    which = np.searchsorted(starts, values, side="right") - 1
    inside = (which >= 0) & (values < ends[np.maximum(which, 0)])
    return [(8 * int(i), allocations[int(which[i])][0]) for i in np.flatnonzero(inside)]
