"""One kernel launch and the memory it can see."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

GUARD_PATTERN = 0xC5


class Role(StrEnum):
    """How a kernel uses a region."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"

    @property
    def written(self) -> bool:
        return self is not Role.INPUT


class ElementType(StrEnum):
    """Element type of a region; decides how it is compared. ``OPAQUE`` is compared bit for bit."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I8 = "i8"
    I32 = "i32"
    U32 = "u32"
    OPAQUE = "opaque"

    @property
    def size(self) -> int:
        """Bytes per element."""
        return _SIZES[self]

    @property
    def is_float(self) -> bool:
        return self in (ElementType.F32, ElementType.F16, ElementType.BF16)


_SIZES = {
    ElementType.F32: 4, ElementType.F16: 2, ElementType.BF16: 2, ElementType.I8: 1,
    ElementType.I32: 4, ElementType.U32: 4, ElementType.OPAQUE: 1,
}


@dataclass(frozen=True, slots=True)
class Region:
    """A buffer with guard bytes on both sides.

    ``address`` is where ``data`` starts on the device; the ``guard`` bytes before and after it are
    mapped, filled with a pattern, and must be found unchanged after the launch.
    """

    name: str
    address: int
    data: bytes
    role: Role
    element: ElementType
    guard: int = 4096

    @property
    def base(self) -> int:
        """Device address of the first guard byte."""
        return self.address - self.guard

    @property
    def mapped(self) -> bytes:
        """Everything the device maps for this region: guard, data, guard."""
        pad = bytes([GUARD_PATTERN]) * self.guard
        return pad + self.data + pad


@dataclass(frozen=True, slots=True)
class Pointer:
    """A 64-bit pointer inside the kernarg: ``offset`` bytes in, to ``regions[region]``."""

    offset: int
    region: int


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One launch: kernarg bytes, dimensions, dynamic LDS and memory before the launch.

    ``grid`` counts workgroups, ``workgroup`` work-items. ``held_out`` dispatches are never shown to
    a proposer and must pass before a commit.
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

    def with_poisoned_outputs(self, seed: int) -> Dispatch:
        """The same launch with every pure output filled with pseudo-random bytes of ``seed``.

        A kernel that leaves part of an output unwritten then differs between seeds.
        """
        rng = np.random.default_rng(seed)
        regions = tuple(
            replace(r, data=rng.bytes(len(r.data))) if r.role is Role.OUTPUT else r
            for r in self.regions
        )
        return replace(self, regions=regions)

    def moved(self, displacement: int) -> Dispatch:
        """The same launch with every region ``displacement`` bytes further, and its pointers."""
        kernarg = bytearray(self.kernarg)
        regions = tuple(replace(r, address=r.address + displacement) for r in self.regions)
        for pointer in self.pointers:
            old = int.from_bytes(kernarg[pointer.offset:pointer.offset + 8], "little")
            kernarg[pointer.offset:pointer.offset + 8] = (old + displacement).to_bytes(8, "little")
        return replace(self, kernarg=bytes(kernarg), regions=regions)

    @property
    def sha256(self) -> str:
        """Identity over everything that decides what the launch computes."""
        digest = hashlib.sha256()
        head = (self.kernel, self.grid, self.workgroup, self.dynamic_lds)
        digest.update(repr(head).encode())
        digest.update(self.kernarg)
        for region in self.regions:
            shape = (region.name, region.address, region.role.value, region.element.value)
            digest.update(repr((*shape, region.guard)).encode())
            digest.update(hashlib.sha256(region.data).digest())
        return digest.hexdigest()
