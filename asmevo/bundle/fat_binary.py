"""Fat bundles in a row: the ``.hip_fatbin`` section of a host file, or a dump of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.bundle.container import SEPARATOR, listed
from asmevo.bundle.elf_sections import find_sections
from asmevo.bundle.errors import BundleError, ReplacementError
from asmevo.bundle.fat_bundle import is_bundle, stored_size

SECTION = ".hip_fatbin"
# Device code of Clang's new offload driver, in another format (LLVM's OffloadBinary).
NEW_DRIVER_SECTION = ".llvm.offloading"
BUNDLE_LIMIT = 1 << 16

_SHF_COMPRESSED = 1 << 11
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """Where a bundle is in a file: its start, its length, and the room before the next one."""

    offset: int
    size: int
    room: int


@dataclass(frozen=True, slots=True)
class FatBinary:
    """A file with bundles inside, named in file order: ``hip_fatbin[0]``, ``hip_fatbin[1]``.

    A bundle stays where it is, because host code refers to its address.
    """

    data: memoryview
    places: Mapping[str, Place]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.places)

    @classmethod
    def of_host(cls, data: memoryview) -> FatBinary:
        """The bundles of a 64-bit ELF program, library or object; often there are none."""
        found = find_sections(data, (SECTION, NEW_DRIVER_SECTION))
        sections = sorted((s for s in found if s.name == SECTION), key=lambda s: s.offset)
        if found and not sections:
            raise BundleError(f"the file's device code is in '{NEW_DRIVER_SECTION}', which AsmEvo "
                              "does not read (compile with --no-offload-new-driver)")
        places: list[Place] = []
        end = 0
        for section in sections:
            if section.flags & _SHF_COMPRESSED:
                raise BundleError(f"section '{SECTION}' is compressed as an ELF section, which "
                                  "AsmEvo does not read")
            if section.offset < end:
                raise BundleError(f"two sections '{SECTION}' overlap in the file")
            end = section.offset + section.size
            places += _places(data, section.offset, end)
        return cls(data, {f"hip_fatbin[{i}]": place for i, place in enumerate(places)})

    @classmethod
    def of_bundles(cls, data: memoryview) -> FatBinary:
        """The bundles of a file that holds nothing else: ``bundle[0]``, ``bundle[1]``."""
        places = _places(data, 0, len(data))
        return cls(data, {f"bundle[{i}]": place for i, place in enumerate(places)})

    def place(self, name: str) -> Place:
        """Where a bundle is in the file; raises `BundleError` when there is no such bundle."""
        if name not in self.places:
            if not self.places:
                raise BundleError(f"there is no '{name}': the file carries no offload bundles")
            first = f"{self.names[0]}{SEPARATOR}{name}"
            hint = f"; in the first it would be '{first}'" if name[-1:] not in ("", "]") else ""
            raise BundleError(f"there is no '{name}' among the file's {len(self.places)} bundles: "
                              f"{listed(self.names)}{hint}")
        return self.places[name]

    def start(self, name: str) -> bytes:
        return bytes(self.read(name)[:64])

    def read(self, name: str) -> memoryview:
        place = self.place(name)
        return self.data[place.offset:place.offset + place.size]

    def room(self, name: str) -> int | None:
        return self.place(name).room

    def replaced(self, name: str, content: bytes, limit: int | None) -> bytes:
        place = self.place(name)
        if len(content) > place.room:
            raise ReplacementError(f"'{name}' would have {len(content)} bytes and has room for "
                                   f"{place.room}")
        length = max(place.size, len(content))
        return b"".join((self.data[:place.offset], content.ljust(length, b"\0"),
                         self.data[place.offset + length:]))


def _places(data: memoryview, start: int, end: int) -> list[Place]:
    """The bundles between two offsets of a file, with nothing but zero bytes between them."""
    found: list[tuple[int, int]] = []
    position = start
    while (position := _skip_zeros(data, position, end)) < end:
        if not is_bundle(data[position:end]):
            raise BundleError(f"the bytes at file offset {position:#x} are neither an offload "
                              "bundle nor padding")
        if len(found) == BUNDLE_LIMIT:
            raise BundleError(f"the file holds more than {BUNDLE_LIMIT} offload bundles")
        size = stored_size(data[position:end])
        found.append((position, size))
        position += size
    stops = [*(offset for offset, _ in found), end][1:]
    return [Place(offset, size, stop - offset)
            for (offset, size), stop in zip(found, stops, strict=True)]


def _skip_zeros(data: memoryview, start: int, end: int) -> int:
    while start < end:
        chunk = bytes(data[start:min(start + _CHUNK, end)])
        if rest := chunk.lstrip(b"\0"):
            return start + len(chunk) - len(rest)
        start += len(chunk)
    return end
