"""Makes captures by launching a kernel: of any dispatch, and smaller ones of captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asmevo.device.device import (
    LINE_BYTES,
    DeviceFault,
    LoadedKernel,
    TracedKernel,
    UnsupportedError,
)
from asmevo.dispatch.captured.capture import Allocation, Capture, PointerField, Segment
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.pointers import find_pointers
from asmevo.dispatch.captured.replay import coalesced, replay
from asmevo.dispatch.captured.roles import pure_outputs
from asmevo.dispatch.captured.trim import Addresses, trimmed
from asmevo.dispatch.dispatch import Dispatch, ElementType, Region, Role

_MOST_RETRIES = 500
# Moves everything by other high address bits, as gates do.
_DISPLACEMENT = -0x1234_5678_9000
_BEFORE, _BEHIND = "before", "behind"


@dataclass(frozen=True)
class Recorder:
    """Records dispatches of one loaded kernel; ``code_object`` is the SHA-256 of its object.

    Every capture that it returns has been replayed with the recorded result.
    """

    loaded: LoadedKernel
    metadata: Mapping[str, Any]
    code_object: str
    origin: str

    def record(self, dispatch: Dispatch) -> Capture:
        """Launch once and capture the launch, memory untrimmed.

        Guards are left out, and so unmapped in a replay, unless the kernel touches them. Raises
        `DeviceFault`, `UnsupportedError`, and `CaptureError` when the replay is not the launch.
        """
        after = self.loaded.run(dispatch).regions
        kernarg = dispatch.kernarg
        if isinstance(self.loaded, TracedKernel):
            kernarg = self.loaded.arguments(dispatch)
        guards: set[tuple[int, str]] = set()
        while True:
            capture = self._captured(dispatch, kernarg, after, guards)
            try:
                self.check(capture)
                return capture
            except DeviceFault as fault:
                touched = _guard_at(dispatch, fault.address) if fault.kind == "memory" else None
                if touched is None or touched in guards:
                    raise CaptureError(f"dispatch '{dispatch.name}' cannot be captured: its replay "
                                       f"faults ({fault})") from fault
                guards.add(touched)

    def check(self, capture: Capture) -> Dispatch:
        """The replay of a capture. Raises `CaptureError` unless it has the recorded result."""
        dispatch = replay(capture, self.metadata)
        _compare(dispatch, self.loaded.run(dispatch).regions)
        return dispatch

    def reduced(self, capture: Capture, granule: int) -> Capture:
        """The same dispatch with only the memory it touches, and with roles and pointers found out.

        Where the device cannot tell what a launch touches, everything stays. Raises as `record`.
        """
        capture = coalesced(capture)
        stored: set[int] = set()
        # A first replay in which everything may be written: it must give what was recorded.
        _compare(open_ := _opened(replay(capture, self.metadata), capture),
                 self.loaded.run(open_).regions)
        lines = np.sort(np.concatenate([
            np.zeros(0, np.uint64),
            *(_lines(allocation.address + segment.offset, segment.size)
              for allocation, segment in capture.segments())]))
        if isinstance(self.loaded, TracedKernel):
            # A trace refuses more than a launch: then nothing is known of what is untouched.
            with suppress(DeviceFault, UnsupportedError):
                lines = self.loaded.touched(open_)
        smaller = self._settled(capture, granule, lines, stored)
        return self._with_pointers(self._with_roles(smaller))

    def _settled(self, capture: Capture, granule: int, lines: Addresses,
                 stored: set[int]) -> Capture:
        """The trimmed capture; what a launch turns out to touch beyond ``lines`` is added."""
        last = -1
        for _ in range(_MOST_RETRIES):
            smaller = trimmed(capture, lines, granule=granule, stored=stored)
            try:
                self.check(smaller)
                return smaller
            except DeviceFault as fault:
                if fault.kind != "memory":
                    raise
                if _holds(smaller, fault.address) and fault.address not in stored:
                    stored.add(fault.address)
                else:
                    # An access may begin in what is mapped and end behind it, or in what may not
                    # be written.
                    behind = fault.address + LINE_BYTES
                    lines = np.union1d(lines, _lines(fault.address, behind - fault.address))
                    if _holds(smaller, behind):
                        stored.add(behind)
                last = fault.address
        raise CaptureError(f"capture '{capture.name}' cannot be trimmed: its replay still faults "
                           f"at {last:#x}")

    def _with_roles(self, capture: Capture) -> Capture:
        """Roles where the recorder gave none."""
        capture = coalesced(capture)
        dispatch = replay(capture, self.metadata)
        unknown = [i for i, (_, segment) in enumerate(capture.segments()) if segment.role is None]
        if not unknown or dispatch.recorded is None:
            return capture
        outputs = pure_outputs(dispatch, dispatch.recorded, self._launched, unknown)
        roles = [Role.OUTPUT if i in outputs else region.role
                 for i, region in enumerate(dispatch.regions)]
        numbered = iter(roles)
        return replace(capture, allocations=tuple(
            replace(a, segments=tuple(replace(s, role=next(numbered)) for s in a.segments))
            for a in capture.allocations))

    def _with_pointers(self, capture: Capture) -> Capture:
        """Pointers where the recorder named none and a replay elsewhere proves those found."""
        if capture.pointers is not None:
            return capture
        found = find_pointers(capture)
        if found is None:
            return capture
        pointed = replace(capture, pointers=found)
        dispatch = replay(pointed, self.metadata)
        moved = dispatch.moved(_DISPLACEMENT)
        if moved is dispatch or dispatch.recorded is None:
            return capture
        # What is a pointer before the launch and still there after it has moved as well.
        after = replace(dispatch, regions=tuple(
            replace(region, data=data)
            for region, data in zip(dispatch.regions, dispatch.recorded, strict=True)))
        kept = tuple(
            p for p in dispatch.pointers if p.holder is None or
            dispatch.regions[p.holder].data[p.offset:p.offset + 8]
            == after.regions[p.holder].data[p.offset:p.offset + 8])
        expected = replace(after, pointers=kept).moved(_DISPLACEMENT)
        result = self._launched(moved)
        same = result is not None and tuple(result) == tuple(r.data for r in expected.regions)
        return pointed if same else capture

    def _launched(self, dispatch: Dispatch) -> Sequence[bytes] | None:
        try:
            return self.loaded.run(dispatch).regions
        except DeviceFault:
            return None

    def _captured(self, dispatch: Dispatch, kernarg: bytes, after: Sequence[bytes],
                  guards: set[tuple[int, str]]) -> Capture:
        allocations = [_allocation(region, mapped)
                       for region, mapped in zip(dispatch.regions, after, strict=True)]
        for index, side in sorted(guards):
            allocations.append(_guard(dispatch.regions[index], side))
        x, y, z = (g * w for g, w in zip(dispatch.grid, dispatch.workgroup, strict=True))
        pointers = tuple(PointerField(p.offset, p.region, p.holder) for p in dispatch.pointers)
        return Capture(
            name=dispatch.name, code_object=self.code_object, kernel=dispatch.kernel,
            kernarg=kernarg, grid=(x, y, z), workgroup=dispatch.workgroup,
            allocations=tuple(allocations), pointers=pointers if dispatch.movable else None,
            dynamic_lds=dispatch.dynamic_lds, relies_on_time=dispatch.relies_on_time,
            origin=self.origin)


def _allocation(region: Region, mapped: bytes) -> Allocation:
    post = mapped[region.guard:region.guard + len(region.data)]
    segments = (Segment(0, region.data, post, region.role, region.role.written),)
    return Allocation(region.name, region.address, len(region.data),
                      segments if region.data else (), region.element, region.order_dependent)


def _guard(region: Region, side: str) -> Allocation:
    """A region's guard, which the kernel reads and may not write."""
    mapped = region.mapped
    data = mapped[:region.guard] if side == _BEFORE else mapped[len(mapped) - region.guard:]
    address = region.base if side == _BEFORE else region.address + len(region.data)
    return Allocation(f"{region.name} ({side})", address, len(data),
                      (Segment(0, data, data, Role.INPUT),), ElementType.OPAQUE)


def _guard_at(dispatch: Dispatch, address: int) -> tuple[int, str] | None:
    """The region whose guard an access at ``address`` touches, and on which side."""
    for index, region in enumerate(dispatch.regions):
        if region.guard and region.base <= address < region.base + len(region.mapped):
            return index, _BEFORE if address < region.address else _BEHIND
    return None


def _opened(dispatch: Dispatch, capture: Capture) -> Dispatch:
    """With everything writable of which the recorder did not say how it is used."""
    return replace(dispatch, regions=tuple(
        region if segment.role is not None else replace(region, role=Role.INOUT)
        for region, (_, segment) in zip(dispatch.regions, capture.segments(), strict=True)))


def _compare(dispatch: Dispatch, after: Sequence[bytes]) -> None:
    for region, want, have in zip(dispatch.regions, dispatch.recorded or (), after, strict=True):
        if want != have:
            first = next(i for i, (a, b) in enumerate(zip(want, have, strict=True)) if a != b)
            raise CaptureError(f"the replay of capture '{dispatch.name}' differs from what was "
                               f"recorded, first at byte {first} of '{region.name}'")


def _holds(capture: Capture, address: int) -> bool:
    return any(0 <= address - allocation.address - segment.offset < segment.size
               for allocation, segment in capture.segments())


def _lines(address: int, size: int) -> Addresses:
    """Addresses of the lines that hold these bytes."""
    return np.arange(address - address % LINE_BYTES, address + size, LINE_BYTES, dtype=np.uint64)
