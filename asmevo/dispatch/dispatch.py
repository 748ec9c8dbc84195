"""One kernel launch and the memory it can see."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import ml_dtypes
import numpy as np


class Role(StrEnum):
    """How a kernel uses a region."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"

    @property
    def written(self) -> bool:
        return self is not Role.INPUT


class ElementType(StrEnum):
    """Element type of a region; decides how it is compared. ``OPAQUE`` is compared bit for bit.

    ``FP8`` and ``BF8`` are gfx942's e4m3fnuz and e5m2fnuz.
    """

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    FP8 = "fp8"
    BF8 = "bf8"
    I8 = "i8"
    U8 = "u8"
    I16 = "i16"
    U16 = "u16"
    I32 = "i32"
    U32 = "u32"
    I64 = "i64"
    U64 = "u64"
    OPAQUE = "opaque"

    @property
    def dtype(self) -> np.dtype[Any]:
        """How NumPy sees one element, little endian."""
        return _DTYPES[self]

    @property
    def size(self) -> int:
        """Bytes per element."""
        return _DTYPES[self].itemsize

    @property
    def is_float(self) -> bool:
        return self in _FLOATS


_DTYPES: dict[ElementType, np.dtype[Any]] = {
    ElementType.F64: np.dtype("<f8"), ElementType.F32: np.dtype("<f4"),
    ElementType.F16: np.dtype("<f2"), ElementType.BF16: np.dtype(ml_dtypes.bfloat16),
    ElementType.FP8: np.dtype(ml_dtypes.float8_e4m3fnuz),
    ElementType.BF8: np.dtype(ml_dtypes.float8_e5m2fnuz),
    ElementType.I8: np.dtype("<i1"), ElementType.U8: np.dtype("<u1"),
    ElementType.I16: np.dtype("<i2"), ElementType.U16: np.dtype("<u2"),
    ElementType.I32: np.dtype("<i4"), ElementType.U32: np.dtype("<u4"),
    ElementType.I64: np.dtype("<i8"), ElementType.U64: np.dtype("<u8"),
    ElementType.OPAQUE: np.dtype("<u1"),
}
# Below lies what a device adds to memory: the code object, arguments.
_LOWEST = 0x2100_0000_0000
# Regions across lines of 4 GiB stay away from each other's windows by so many of them.
_WINDOWS_APART = 5
# How allocators align, as far as the size of a region allows a line inside it.
_ADDRESS_UNIT = 1 << 20
_UNITS = ((256, 1024), (64, 256), (16, 32))
_LEAST_UNIT = 4
_FLOATS = frozenset({
    ElementType.F64, ElementType.F32, ElementType.F16, ElementType.BF16, ElementType.FP8,
    ElementType.BF8,
})


@dataclass(frozen=True, slots=True)
class Region:
    """A buffer with guard bytes on both sides.

    ``address`` is where ``data`` starts on the device; the ``guard`` bytes before and after it are
    mapped and must be found unchanged after the launch. They hold pseudo-random bytes of
    ``guard_seed``: a fixed pattern could be overwritten with itself. ``order_dependent``:
    workgroups add to it with floating-point atomics, so that its last bits depend on their order.
    """

    name: str
    address: int
    data: bytes
    role: Role
    element: ElementType
    guard: int = 4096
    guard_seed: int = 0
    order_dependent: bool = False
    _mapped: list[bytes] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def base(self) -> int:
        """Device address of the first guard byte."""
        return self.address - self.guard

    @property
    def mapped(self) -> bytes:
        """Everything the device maps for this region: guard, data, guard. One and the same object
        each time: what a launch cannot have written is compared by identity."""
        if not self._mapped:
            front, back = self.guards
            self._mapped.append(b"".join((front, self.data, back)))
        return self._mapped[0]

    @property
    def guards(self) -> tuple[bytes, bytes]:
        """What is mapped in front of the data, and behind it."""
        pad = np.random.default_rng([self.guard_seed, *self.name.encode()]).bytes(2 * self.guard)
        return pad[:self.guard], pad[self.guard:]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A 64-bit pointer to ``regions[region]``, ``offset`` bytes into the kernarg, or into
    ``regions[holder]``: kernels take tables of pointers.
    """

    offset: int
    region: int
    holder: int | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One launch: kernarg bytes, dimensions, dynamic LDS and memory before the launch.

    ``grid`` counts workgroups, ``workgroup`` work-items. ``held_out`` dispatches are never shown to
    a proposer and must pass before a commit. ``names`` are the values from which a declared oracle
    made it: constants, shape variables and scalar arguments. ``relies_on_time`` says that the
    kernel lacks waits or barriers where, on hardware, what they are for has long happened.
    ``family`` is the family of a declared oracle's inputs.

    A captured dispatch has the region data after it as ``recorded``, and is not ``movable`` where
    nobody knows all the pointers in its memory.
    """

    name: str
    kernel: str
    kernarg: bytes
    grid: tuple[int, int, int]
    workgroup: tuple[int, int, int]
    regions: tuple[Region, ...]
    pointers: tuple[Pointer, ...]
    dynamic_lds: int = 0
    held_out: bool = False
    names: Mapping[str, int | float] = field(default_factory=dict, compare=False)
    relies_on_time: bool = False
    family: str | None = field(default=None, compare=False)
    movable: bool = field(default=True, compare=False)
    recorded: tuple[bytes, ...] | None = field(default=None, compare=False, repr=False)

    def with_poisoned_outputs(self, seed: int | None) -> Dispatch:
        """The same launch with pure outputs and guards filled with pseudo-random bytes of ``seed``.

        A kernel that leaves part of an output unwritten then differs between seeds. Without a seed
        all bits of the outputs are set, which is NaN in every floating-point format but the
        8-bit ones.
        """
        rng = np.random.default_rng(seed or 0)

        def filling(size: int) -> bytes:
            return bytes([0xFF]) * size if seed is None else rng.bytes(size)

        regions = tuple(
            replace(
                r, guard_seed=seed or 0,
                data=filling(len(r.data)) if r.role is Role.OUTPUT else r.data,
            )
            for r in self.regions
        )
        return replace(self, regions=regions)

    def moved(self, displacement: int) -> Dispatch:
        """The same launch with every region ``displacement`` bytes further, and its pointers.

        It stays where it is when it is not `movable` or lies too low for that.
        """
        return self._moved([displacement] * len(self.regions))

    def across_lines(self, seed: int, *, middle: bool, whole: Container[str] = ()) -> Dispatch:
        """The same launch with an address inside every region whose lower word is zero.

        Sums of addresses then carry into the upper word, whose lack no other placement shows. Each
        region has windows of 4 GiB of its own. The line is in the ``middle`` of a region, or
        somewhere; regions named ``whole``, and those of a single element, lie between lines.
        """
        rng = np.random.default_rng([seed, *self.name.encode()])
        window = min((r.base >> 32 for r in self.regions), default=0)
        displacements = []
        for region in self.regions:
            size = len(region.data)
            window -= _WINDOWS_APART + (size >> 32)
            unit = max(region.element.size, next(
                (unit for unit, enough in _UNITS if size >= enough), _LEAST_UNIT))
            units = size // unit
            least = max(1, units // 8)
            at = units // 2 if middle else int(rng.integers(least, max(least + 1, units - least)))
            inside = at * unit if units > 1 and region.name not in whole else -_ADDRESS_UNIT
            displacements.append((window << 32) - inside - region.address)
        return self._moved(displacements)

    def _moved(self, displacements: Sequence[int]) -> Dispatch:
        if not self.movable or any(r.base + by < _LOWEST
                                   for r, by in zip(self.regions, displacements, strict=True)):
            return self
        kernarg = bytearray(self.kernarg)
        contents = {p.holder: bytearray(self.regions[p.holder].data)
                    for p in self.pointers if p.holder is not None}
        for pointer in self.pointers:
            holder = kernarg if pointer.holder is None else contents[pointer.holder]
            place = slice(pointer.offset, pointer.offset + 8)
            old = int.from_bytes(holder[place], "little")
            holder[place] = (old + displacements[pointer.region]).to_bytes(8, "little")
        regions = tuple(
            replace(r, address=r.address + by,
                    data=bytes(contents[i]) if i in contents else r.data)
            for i, (r, by) in enumerate(zip(self.regions, displacements, strict=True)))
        return replace(self, kernarg=bytes(kernarg), regions=regions)

    def brought_back(self, regions: Sequence[bytes], moved: Dispatch) -> tuple[bytes, ...]:
        """The post-state ``regions`` of this launch, which ran as ``moved``, as if it had run here.

        Pointers in memory that the launch left alone become those of this dispatch.
        """
        found = list(regions)
        for pointer in self.pointers:
            if pointer.holder is None:
                continue
            here, there = self.regions[pointer.holder], moved.regions[pointer.holder]
            place = slice(pointer.offset, pointer.offset + 8)
            mapped = slice(here.guard + place.start, here.guard + place.stop)
            content = found[pointer.holder]
            if content[mapped] == there.data[place]:
                found[pointer.holder] = (content[:mapped.start] + here.data[place]
                                         + content[mapped.stop:])
        return tuple(found)

    @property
    def sha256(self) -> str:
        """Identity over everything that decides what the launch computes."""
        return identity(
            (self.kernel, self.grid, self.workgroup, self.dynamic_lds), self.kernarg,
            ((r.name, r.address, r.role.value, r.element.value, r.guard,
              hashlib.sha256(r.data).digest()) for r in self.regions),
            relies_on_time=self.relies_on_time)


def identity(head: tuple[str, tuple[int, int, int], tuple[int, int, int], int], kernarg: bytes,
             regions: Iterable[tuple[str, int, str, str, int, bytes]], *,
             relies_on_time: bool) -> str:
    """`Dispatch.sha256` of a dispatch whose memory is not at hand.

    ``head`` is kernel, grid, workgroup and dynamic LDS; each region is name, address, role,
    element, guard and the SHA-256 of its bytes.
    """
    digest = hashlib.sha256()
    digest.update(repr(head).encode())
    digest.update(kernarg)
    if relies_on_time:
        digest.update(b"relies on time")
    for *shape, content in regions:
        digest.update(repr(tuple(shape)).encode())
        digest.update(bytes(content))
    return digest.hexdigest()
