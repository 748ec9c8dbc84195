"""A capture without what its dispatch did not touch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from asmevo.dispatch.captured.capture import MAX_SEGMENTS, Allocation, Capture, Segment
from asmevo.dispatch.captured.errors import CaptureError

Addresses = npt.NDArray[np.uint64]

_FINEST = 128  # bytes of a memory line, in which devices tell what was touched
_COARSEST = 1 << 30


def check_granule(granule: int) -> None:
    """Raise `CaptureError` unless it is a power of two from 128 to 2^30."""
    if not _FINEST <= granule <= _COARSEST or granule & (granule - 1):
        raise CaptureError(f"the granularity of a capture must be a power of two from {_FINEST} "
                           f"to {_COARSEST} bytes, not {granule}")


def trimmed(capture: Capture, touched: Addresses, *, granule: int,
            stored: Collection[int] = ()) -> Capture:
    """Only the parts of ``capture`` whose aligned ``granule`` bytes the dispatch touched.

    ``touched`` are addresses of touched lines, ascending; ``stored`` are addresses that it stored
    to without a trace in the bytes. Where the recorder did not say what is written, segments are
    split so that no part that is only read lies in one with a part that is written. A granule is
    made larger for a dispatch whose accesses are so scattered that it takes too many segments.
    """
    check_granule(granule)
    written = np.sort(np.fromiter(stored, np.uint64, len(stored)))
    while True:
        allocations = tuple(
            replace(a, segments=tuple(part for segment in a.segments for part in
                                      _parts(a, segment, touched, written, granule)))
            for a in capture.allocations)
        if sum(len(a.segments) for a in allocations) <= MAX_SEGMENTS // 8:
            break
        granule *= 2
    pointers = capture.pointers
    if pointers is not None:
        # Nobody reads a pointer that lies in what is left out.
        pointers = tuple(p for p in pointers if p.holder is None or any(
            s.offset <= p.offset <= s.end - 8 for s in allocations[p.holder].segments))
    return replace(capture, allocations=allocations, pointers=pointers)


def _parts(allocation: Allocation, segment: Segment, touched: Addresses, stored: Addresses,
           granule: int) -> Iterator[Segment]:
    start = allocation.address + segment.offset
    first = start // granule
    count = (start + segment.size - 1) // granule - first + 1
    state = np.zeros(count, np.uint8)
    state[_granules(touched, start, segment.size, granule)] = 1
    if segment.role is None:
        changed = np.flatnonzero(np.frombuffer(segment.pre, np.uint8)
                                 != np.frombuffer(segment.post, np.uint8))
        state[(changed.astype(np.uint64) + np.uint64(start)) // np.uint64(granule)
              - np.uint64(first)] = 2
        state[_granules(stored, start, segment.size, granule)] = 2
    edges = np.flatnonzero(np.diff(state)) + 1
    for begin, end in pairwise([0, *(int(edge) for edge in edges), count]):
        if state[begin]:
            low = max((first + begin) * granule - start, 0)
            high = min((first + end) * granule - start, segment.size)
            yield replace(segment, offset=segment.offset + low, pre=segment.pre[low:high],
                          post=segment.post[low:high],
                          written=segment.written or bool(state[begin] == 2))


def _granules(addresses: Addresses, start: int, size: int, granule: int) -> Addresses:
    """Which granules, counted from that of ``start``, hold one of the addresses' lines."""
    low, high = np.searchsorted(
        addresses, np.array([max(start - _FINEST + 1, 0), start + size], np.uint64))
    inside = np.maximum(addresses[low:high], np.uint64(start))
    return np.unique(inside // np.uint64(granule)) - np.uint64(start // granule)
