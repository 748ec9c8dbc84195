"""A captured dispatch as values: what `dispatch.json` and its blobs say, checked.

docs/capture.md is the format's specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.dispatch import ElementType, Role

ADDRESSES = 1 << 47  # what user space has on x86-64, where a GPU's virtual addresses lie as well
MAX_KERNARG = 1 << 20
MAX_SEGMENTS = 1 << 16
MAX_NAME = 200
MAX_SYMBOL = 1 << 14  # mangled names of templates are long


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of bytes of an allocation, ``offset`` bytes into it, before and after the dispatch.

    ``role`` is how the dispatch uses it, ``None`` where the recorder does not know: then it is what
    the difference between ``pre`` and ``post`` shows. ``written`` says that the dispatch stored to
    it, even if that left every byte as it was.
    """

    offset: int
    pre: bytes = field(repr=False)
    post: bytes = field(repr=False)
    role: Role | None = None
    written: bool = False

    @property
    def size(self) -> int:
        return len(self.pre)

    @property
    def end(self) -> int:
        return self.offset + len(self.pre)

    @property
    def changed(self) -> bool:
        return self.pre != self.post


@dataclass(frozen=True, slots=True)
class Allocation:
    """What the application had allocated at ``address``; ``segments`` are the parts recorded.

    What lies between segments is no part of the capture and unmapped in a replay. ``element`` is
    `ElementType.OPAQUE` where nothing better is known. ``order_dependent``: see `Region`.
    """

    name: str
    address: int
    size: int
    segments: tuple[Segment, ...]
    element: ElementType = ElementType.OPAQUE
    order_dependent: bool = False

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class PointerField:
    """Eight bytes that hold a device address.

    They lie ``offset`` bytes into the kernarg, or into ``allocations[holder]``, and point into
    ``allocations[target]``.
    """

    offset: int
    target: int
    holder: int | None = None


@dataclass(frozen=True, slots=True)
class Capture:
    """One dispatch of one kernel. Raises `CaptureError` for what contradicts itself.

    ``code_object`` is the SHA-256 of the object that was loaded, ``kernel`` its symbol. ``grid``
    counts work-items, as an AQL packet does, and ``dynamic_lds`` is what the packet asks for beyond
    the kernel's own. ``pointers`` is ``None`` where the recorder did not say which bytes are
    pointers. ``origin`` is who recorded it on what.
    """

    name: str
    code_object: str
    kernel: str
    kernarg: bytes = field(repr=False)
    grid: tuple[int, int, int]
    workgroup: tuple[int, int, int]
    allocations: tuple[Allocation, ...]
    pointers: tuple[PointerField, ...] | None = None
    dynamic_lds: int = 0
    relies_on_time: bool = False
    origin: str = "unknown"

    def __post_init__(self) -> None:
        _check_text("name", self.name)
        _check_text("kernel symbol", self.kernel, MAX_SYMBOL)
        _check_text("origin", self.origin)
        if len(self.kernarg) > MAX_KERNARG:
            raise CaptureError(f"capture '{self.name}' has {len(self.kernarg)} bytes of kernarg, "
                               f"more than {MAX_KERNARG}")
        if min(*self.grid, *self.workgroup) < 1 or self.dynamic_lds < 0:
            raise CaptureError(f"capture '{self.name}' has an impossible launch: grid {self.grid}, "
                               f"workgroup {self.workgroup}, {self.dynamic_lds} bytes of LDS")
        self._check_allocations()
        for pointer in self.pointers or ():
            self._check_pointer(pointer)
        places = sorted((-1 if p.holder is None else p.holder, p.offset)
                        for p in self.pointers or ())
        for (holder, first), (other, second) in pairwise(places):
            if holder == other and second < first + 8:
                where = "the kernarg" if holder < 0 else f"'{self.allocations[holder].name}'"
                raise CaptureError(f"capture '{self.name}' has two pointers that overlap, at "
                                   f"offsets {first} and {second} of {where}")

    def segments(self) -> Iterator[tuple[Allocation, Segment]]:
        """All segments with their allocation, by allocation and offset."""
        for allocation in self.allocations:
            for segment in allocation.segments:
                yield allocation, segment

    @property
    def size(self) -> int:
        """Bytes of memory before the dispatch."""
        return sum(segment.size for _, segment in self.segments())

    def _check_allocations(self) -> None:
        names: set[str] = set()
        if sum(len(a.segments) for a in self.allocations) > MAX_SEGMENTS:
            raise CaptureError(f"capture '{self.name}' has more than {MAX_SEGMENTS} segments")
        for allocation in self.allocations:
            _check_text("name of an allocation", allocation.name)
            if allocation.name in names:
                raise CaptureError(f"capture '{self.name}' has two allocations named "
                                   f"'{allocation.name}'")
            names.add(allocation.name)
            if not 0 < allocation.address <= allocation.end <= ADDRESSES or allocation.size < 1:
                raise CaptureError(f"allocation '{allocation.name}' of capture '{self.name}' "
                                   f"leaves the 47-bit user address space")
            _check_segments(allocation)
        for first, second in pairwise(sorted(self.allocations, key=lambda a: a.address)):
            if second.address < first.end:
                raise CaptureError(f"allocations '{first.name}' and '{second.name}' of capture "
                                   f"'{self.name}' overlap")

    def _check_pointer(self, pointer: PointerField) -> None:
        count = len(self.allocations)
        if not 0 <= pointer.target < count or not (
                pointer.holder is None or 0 <= pointer.holder < count):
            raise CaptureError(f"capture '{self.name}' has a pointer to or in allocation "
                               f"{max(pointer.target, pointer.holder or 0)}, but {count} of them")
        held = self._held(pointer)
        if held is None:
            where = ("the kernarg" if pointer.holder is None else
                     f"what is recorded of '{self.allocations[pointer.holder].name}'")
            raise CaptureError(f"capture '{self.name}' has a pointer at offset {pointer.offset}, "
                               f"outside {where}")
        target = self.allocations[pointer.target]
        # One may point just behind what it belongs to, as ends of ranges do.
        if not target.address <= held <= target.end:
            raise CaptureError(f"capture '{self.name}' has a pointer at offset {pointer.offset} "
                               f"that holds {held:#x}, which is not in '{target.name}'")

    def _held(self, pointer: PointerField) -> int | None:
        """The address at a pointer's place, if its eight bytes are there."""
        parts = [(0, self.kernarg)] if pointer.holder is None else [
            (s.offset, s.pre) for s in self.allocations[pointer.holder].segments]
        for start, data in parts:
            if start <= pointer.offset <= start + len(data) - 8:
                at = pointer.offset - start
                return int.from_bytes(data[at:at + 8], "little")
        return None


def _check_segments(allocation: Allocation) -> None:
    end = 0
    for segment in allocation.segments:
        where = f"of allocation '{allocation.name}' at offset {segment.offset}"
        if not segment.pre:
            raise CaptureError(f"the segment {where} is empty")
        if len(segment.post) != len(segment.pre):
            raise CaptureError(f"the segment {where} has {len(segment.pre)} bytes before the "
                               f"dispatch and {len(segment.post)} after it")
        if segment.offset < end:
            raise CaptureError(f"the segment {where} overlaps another or is out of order")
        if segment.end > allocation.size:
            raise CaptureError(f"the segment {where} leaves its {allocation.size} bytes")
        if segment.role is Role.INPUT and (segment.changed or segment.written):
            raise CaptureError(f"the segment {where} is an input, but the dispatch wrote it")
        end = segment.end


def _check_text(kind: str, text: str, limit: int = MAX_NAME) -> None:
    if not text or len(text) > limit or not text.isprintable():
        raise CaptureError(f"the {kind} of a capture must be 1 to {limit} printable characters, "
                           f"not {text[:40]!r}")

