"""Emulated launches that find out what a kernel touches."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.dispatch.generator import SMALL, generate
from asmevo.dispatch.inferred.argument import PointerArgument, ScalarArgument
from asmevo.dispatch.kernel import SCALAR_FORMATS
from asmevo.errors import AsmEvoError

# Buffers lie so far apart that no offset of 32 bits leads from one to another, and far from what
# a device maps for a launch itself.
_WINDOW = 1 << 36
_FIRST_ADDRESS = 0x6000_0000_0000
_DISPLACEMENT = 0x123_4567_8000
_FIRST_BYTES = 256
_MOST_BYTES = 1 << 25
_MOST_ACCESS = 16  # bytes that one lane reads at once
_LIMIT = 2_000_000
_MOST_LAUNCHES = 6000
_MOST_INSTRUCTIONS = 30_000_000
_COMPLEMENT = bytes(255 - value for value in range(256))


class ProbeFault(AsmEvoError):  # noqa: N818 - a fault is what the hardware calls it
    """A probing launch faulted; ``address`` is what it touched, of a ``memory`` fault."""

    def __init__(self, message: str, *, kind: str, address: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.address = address


# Launches a dispatch under a condition (0: as is, 1: other undefined state and the opposite order
# of workgroups) with a bound on wave-instructions; gives the regions afterwards and how many
# wave-instructions it took. Raises `ProbeFault`.
Probe = Callable[[Dispatch, int, int], tuple[tuple[bytes, ...], int]]


class ProbingExhausted(AsmEvoError):  # noqa: N818 - not an error of its own
    """The launches that inference may make are used up."""


class RefusedLaunch(AsmEvoError):  # noqa: N818 - not an error of its own
    """These scalars and this grid are no launch of the kernel; the message says why."""


class PartlyWritten(RefusedLaunch):
    """Too little of an output is written: ``fraction`` of ``buffer``."""

    def __init__(self, buffer: str, fraction: float) -> None:
        super().__init__(f"it writes only {fraction:.0%} of '{buffer}'")
        self.fraction = fraction


@dataclass(frozen=True)
class Launched:
    """A launch to try: a grid of workgroups and the values of the scalar arguments."""

    grid: tuple[int, int, int]
    workgroup: tuple[int, int, int]
    scalars: Mapping[str, int | float]
    dynamic_lds: int = 0


@dataclass(frozen=True)
class Touched:
    """What a launch touched: by buffer the bytes from its start, and which of them it wrote.

    ``after`` is what written buffers hold then, of two fills the first; ``ordinary`` what they hold
    where they held numbers of their element before, and ``before`` those.
    ``reads_itself`` are buffers whose new contents depend on their old ones.
    """

    extents: Mapping[str, int]
    written: Mapping[str, NDArray[np.bool_]]
    after: Mapping[str, bytes]
    before: Mapping[str, bytes]
    ordinary: Mapping[str, bytes]
    reads_itself: frozenset[str]

    @property
    def written_bytes(self) -> int:
        return sum(int(mask.sum()) for mask in self.written.values())


@dataclass
class Prober:
    """Launches a kernel with buffers of just the size that it needs.

    Every buffer grows from nothing: where a launch touches unmapped memory behind it, it becomes
    larger. `touched` then finds the smallest sizes that do.
    """

    symbol: str
    kernarg_size: int
    pointers: tuple[PointerArgument, ...]
    scalars: tuple[ScalarArgument, ...]
    probe: Probe
    seed: int = 0
    limit: int = _LIMIT
    families: Mapping[str, str] = field(default_factory=dict)
    launches: int = 0
    instructions: int = 0
    _largest: bool = False
    _minimal: dict[object, dict[str, int]] = field(default_factory=dict, repr=False)

    def dispatch(self, launch: Launched, sizes: Mapping[str, int], fills: Mapping[str, int]
                 ) -> Dispatch:
        kernarg = bytearray(self.kernarg_size)
        for scalar in self.scalars:
            struct.pack_into(SCALAR_FORMATS[scalar.type], kernarg, scalar.offset,
                             launch.scalars[scalar.name])
        regions, pointers = [], []
        for number, pointer in enumerate(self.pointers):
            address = _FIRST_ADDRESS + number * _WINDOW
            struct.pack_into("<Q", kernarg, pointer.offset, address)
            pointers.append(Pointer(pointer.offset, number))
            size = sizes[pointer.name]
            regions.append(Region(pointer.name, address,
                                  self._contents(pointer, size, fills.get(pointer.name, 0)),
                                  Role.INOUT, ElementType.OPAQUE, guard=0))
        return Dispatch("probe", self.symbol, bytes(kernarg), launch.grid, launch.workgroup,
                        tuple(regions), tuple(pointers), dynamic_lds=launch.dynamic_lds)

    def _contents(self, pointer: PointerArgument, size: int, fill: int) -> bytes:
        element = pointer.elements[0]
        if fill and not pointer.steers:
            # The second fill differs from the first in every byte: what is neither was written.
            noise = np.random.default_rng([self.seed, *pointer.name.encode()]).bytes(size)
            return noise if fill == 1 else bytes(noise.translate(_COMPLEMENT))
        rng = np.random.default_rng([self.seed, fill, *pointer.name.encode()])
        count = -(-size // element.size)
        if self._largest and pointer.steers and not element.is_float:
            return np.full(count, SMALL - 1, element.dtype).tobytes()[:size]
        family = self.families.get(pointer.name, "normal")
        return generate(element, count, rng, family=family, scale=1.0)[:size]

    def run(self, launch: Launched, sizes: Mapping[str, int],
            fills: Mapping[str, int] | None = None, condition: int = 0,
            displacement: int = 0) -> tuple[bytes, ...]:
        """The buffers after a launch. Raises `ProbeFault` and `ProbingExhausted`."""
        self.launches += 1
        if self.launches > _MOST_LAUNCHES or self.instructions > _MOST_INSTRUCTIONS:
            raise ProbingExhausted(f"{self.launches} launches of {self.instructions} "
                                   "wave-instructions led nowhere")
        dispatch = self.dispatch(launch, sizes, fills or {}).moved(displacement)
        try:
            regions, instructions = self.probe(dispatch, condition, self.limit)
        except ProbeFault as fault:
            if fault.kind == "budget":
                self.instructions += self.limit
            raise
        self.instructions += instructions
        return regions

    def grown(self, launch: Launched, sizes: Mapping[str, int]) -> tuple[dict[str, int],
                                                                         dict[str, int]]:
        """Sizes with which the launch ends, and sizes that it needs at least.

        Raises `RefusedLaunch` where it touches what belongs to no buffer, or never ends.
        """
        grown, least = dict(sizes), dict.fromkeys(sizes, 1)
        while True:
            try:
                self.run(launch, grown)
                return grown, least
            except ProbeFault as fault:
                name, offset = self._place(fault)
                if offset + _MOST_ACCESS <= grown[name]:
                    raise RefusedLaunch(f"it faults inside '{name}': {fault}") from None
                least[name] = max(least[name], offset + 1)
                grown[name] = min(max(2 * grown[name], -(-(offset + 64) // 64) * 64), _MOST_BYTES)
                if offset >= _MOST_BYTES:
                    raise RefusedLaunch(f"it touches byte {offset:#x} of '{name}'") from None

    def _place(self, fault: ProbeFault) -> tuple[str, int]:
        if fault.kind != "memory":
            raise RefusedLaunch(f"it does not end well: {fault}") from None
        number, offset = divmod(fault.address - _FIRST_ADDRESS, _WINDOW)
        if not 0 <= number < len(self.pointers):
            raise RefusedLaunch(f"it touches {fault.address:#x}, which no pointer leads to"
                                ) from None
        if offset >= _WINDOW - (1 << 32):
            following = self.pointers[number + 1].name if number + 1 < len(self.pointers) else "?"
            raise RefusedLaunch(f"it touches memory before '{following}'") from None
        return self.pointers[number].name, offset

    def minimal(self, launch: Launched, sizes: Mapping[str, int]) -> dict[str, int]:
        """The smallest sizes, in whole elements, with which the launch ends."""
        key = (launch.grid, launch.workgroup, tuple(launch.scalars.items()), launch.dynamic_lds)
        if key not in self._minimal:
            found = self._shrunk(launch, sizes)
            if any(p.steers for p in self.pointers):
                # Other contents lead elsewhere; as far as any of their family, the largest do.
                self._largest = True
                try:
                    farthest = self._shrunk(launch, found)
                finally:
                    self._largest = False
                found = {name: max(size, farthest[name]) for name, size in found.items()}
            self._minimal[key] = found
        return self._minimal[key]

    def _shrunk(self, launch: Launched, sizes: Mapping[str, int]) -> dict[str, int]:
        tight, least = self.grown(launch, sizes)
        for pointer in self.pointers:
            name, unit = pointer.name, pointer.elements[0].size
            # `low` elements are too few, `high` are enough.
            low, high = -(-least[name] // unit) - 1, -(-tight[name] // unit)
            while high - low > 1:
                middle = (low + high) // 2
                try:
                    self.run(launch, {**tight, name: middle * unit}, condition=1)
                    high = middle
                except ProbeFault as fault:
                    where, offset = self._place(fault)
                    if where != name:
                        raise RefusedLaunch(f"'{where}' depends on the size of '{name}'") from None
                    low = max(middle, min(offset // unit, high - 1))
            tight[name] = high * unit
        return tight

    def touched(self, launch: Launched, sizes: Mapping[str, int], *, exact: bool = True) -> Touched:
        """What a launch touches. Raises `RefusedLaunch` also where its results vary."""
        found = self.minimal(launch, sizes) if exact else self.grown(launch, sizes)[0]
        written = [p.name for p in self.pointers if p.stores or p.atomics]
        first = self._after(launch, found, dict.fromkeys(written, 1))
        second = self._after(launch, found, dict.fromkeys(written, 2))
        before = {name: self._fills(name, found[name]) for name in written}
        masks = {}
        for name in written:
            a, b = (np.frombuffer(run[name], np.uint8) for run in (first, second))
            one, two = before[name]
            masks[name] = (a != one) | (b != two) | ((one != two) & (a == b))
        atomic = {p.name for p in self.pointers if p.atomics}
        itself = frozenset(
            name for name in written
            if (masks[name] & (_differing(first[name], second[name]) | (name in atomic))).any())
        for pointer in self.pointers:
            if pointer.name in itself:
                # A sum may leave some bytes of an element as they were.
                masks[pointer.name] = _whole(masks[pointer.name], pointer.elements[0].size)
        ordinary = self._after(launch, found, {}) if exact else first
        return Touched(
            found, masks, {name: first[name] for name in written},
            {p.name: self._contents(p, found[p.name], 0) for p in self.pointers
             if exact and p.name in masks},
            {name: ordinary[name] for name in written}, itself)

    def repeats(self, launch: Launched, sizes: Mapping[str, int]) -> set[str]:
        """Buffers whose contents differ under other undefined state, placement and order of
        workgroups, whether outputs held ordinary numbers or any bytes before.
        """
        differing = set()
        for fill in (0, 1):
            fills = {p.name: fill for p in self.pointers if p.stores or p.atomics}
            try:
                one = self.run(launch, sizes, fills, 0)
                other = self.run(launch, sizes, fills, 1, _DISPLACEMENT)
            except ProbeFault as fault:
                raise RefusedLaunch(f"it faults under other conditions: {fault}") from None
            differing |= {p.name for p, a, b in zip(self.pointers, one, other, strict=True)
                          if a != b}
        return differing

    def _after(self, launch: Launched, sizes: Mapping[str, int], fills: Mapping[str, int]
               ) -> dict[str, bytes]:
        try:
            regions = self.run(launch, sizes, fills)
        except ProbeFault as fault:
            raise RefusedLaunch(f"it depends on what its outputs held: {fault}") from None
        return {p.name: data for p, data in zip(self.pointers, regions, strict=True)}

    def _fills(self, name: str, size: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        pointer = next(p for p in self.pointers if p.name == name)
        one, two = (np.frombuffer(self._contents(pointer, size, fill), np.uint8)
                    for fill in (1, 2))
        return one, two


def _whole(mask: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """``mask`` with every element that has one byte in it."""
    end = len(mask) // size * size
    whole = np.repeat(mask[:end].reshape(-1, size).any(axis=1), size)
    return np.concatenate([whole, mask[end:]])


def _differing(one: bytes, other: bytes) -> NDArray[np.bool_]:
    differs: NDArray[np.bool_] = np.frombuffer(one, np.uint8) != np.frombuffer(other, np.uint8)
    return differs


def first_sizes(pointers: tuple[PointerArgument, ...]) -> dict[str, int]:
    return {p.name: _FIRST_BYTES for p in pointers}
