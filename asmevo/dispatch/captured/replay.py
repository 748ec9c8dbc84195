"""From a capture to a dispatch that any device can launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from asmevo.dispatch.captured.capture import Allocation, Capture, Segment
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.hidden_arguments import replayable_kernarg
from asmevo.dispatch.dispatch import Dispatch, Pointer, Region, Role


def replay(capture: Capture, metadata: Mapping[str, Any], *, held_out: bool = False) -> Dispatch:
    """The dispatch of a capture: its memory at the original addresses, and nothing else mapped.

    Segments become regions without guards: what is around them is unmapped, which shows more.
    Those that meet and are used alike become one, see `coalesced`.
    ``metadata`` is that of the kernel. Raises `CaptureError` for what cannot be replayed.
    """
    capture = coalesced(capture)
    if any(grid % size for grid, size in zip(capture.grid, capture.workgroup, strict=True)):
        raise CaptureError(f"capture '{capture.name}' has a grid of {capture.grid} work-items, "
                           f"which is no multiple of its workgroups of {capture.workgroup}")
    regions: list[Region] = []
    taken: set[str] = set()
    first: dict[int, int] = {}
    for index, allocation in enumerate(capture.allocations):
        first[index] = len(regions)
        for segment in allocation.segments:
            region = _region(allocation, segment)
            if region.name in taken:
                raise CaptureError(f"capture '{capture.name}' gives two segments the name "
                                   f"'{region.name}'")
            taken.add(region.name)
            regions.append(region)
    x, y, z = (grid // size for grid, size in zip(capture.grid, capture.workgroup, strict=True))
    return Dispatch(
        name=capture.name, kernel=capture.kernel, kernarg=replayable_kernarg(capture, metadata),
        grid=(x, y, z), workgroup=capture.workgroup, regions=tuple(regions),
        pointers=tuple(_pointers(capture, first)), dynamic_lds=capture.dynamic_lds,
        held_out=held_out, relies_on_time=capture.relies_on_time,
        movable=capture.pointers is not None,
        recorded=tuple(segment.post for _, segment in capture.segments()),
    )


def role_of(segment: Segment) -> Role:
    """The recorded role, or what can be told without it: nothing says that it was not read."""
    if segment.role is not None:
        return segment.role
    return Role.INOUT if segment.changed or segment.written else Role.INPUT


def coalesced(capture: Capture) -> Capture:
    """Segments that meet and are used alike made one: an access may reach over where they meet."""
    return replace(capture, allocations=tuple(
        replace(a, segments=tuple(_joined(a.segments))) for a in capture.allocations))


def _joined(segments: Sequence[Segment]) -> Iterator[Segment]:
    run: list[Segment] = []
    for segment in segments:
        if run and (run[-1].end != segment.offset or role_of(run[-1]) is not role_of(segment)):
            yield _one(run)
            run = []
        run.append(segment)
    if run:
        yield _one(run)


def _one(run: Sequence[Segment]) -> Segment:
    if len(run) == 1:
        return run[0]
    roles = {segment.role for segment in run}
    return Segment(
        run[0].offset, b"".join(s.pre for s in run), b"".join(s.post for s in run),
        # Where one does not know its role, what can be told is what they have in common.
        role=roles.pop() if len(roles) == 1 else role_of(run[0]),
        written=any(s.written for s in run))


def _region(allocation: Allocation, segment: Segment) -> Region:
    whole = segment.offset == 0 and segment.size == allocation.size
    return Region(
        name=allocation.name if whole else f"{allocation.name}+{segment.offset:#x}",
        address=allocation.address + segment.offset, data=segment.pre, role=role_of(segment),
        element=allocation.element, guard=0, order_dependent=allocation.order_dependent,
    )


def _pointers(capture: Capture, first: Mapping[int, int]) -> Iterator[Pointer]:
    """``first[i]`` is the region of allocation ``i``'s first segment.

    What points to an allocation of which nothing is recorded is no pointer of the replay.
    """
    for pointer in capture.pointers or ():
        if not capture.allocations[pointer.target].segments:
            continue
        if pointer.holder is None:
            yield Pointer(pointer.offset, first[pointer.target])
            continue
        segments = capture.allocations[pointer.holder].segments
        index = next(i for i, s in enumerate(segments)
                     if s.offset <= pointer.offset <= s.end - 8)
        yield Pointer(pointer.offset - segments[index].offset, first[pointer.target],
                      first[pointer.holder] + index)
