"""Sections of any 64-bit little-endian ELF file: host libraries, and any code object."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from asmevo.bundle.errors import BundleError

# Far above any real file; bounds the work that a hostile header can ask for.
SECTION_LIMIT = 1 << 20

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SHT_NULL, _SHT_NOBITS = 0, 8
_SHN_XINDEX = 0xFFFF


@dataclass(frozen=True, slots=True)
class Extent:
    """A section's place in its file, in bytes; ``name`` only where it was searched for."""

    name: str
    flags: int
    offset: int
    size: int


def is_elf64(data: memoryview) -> bool:
    """Whether a 64-bit little-endian ELF file starts here."""
    return bytes(data[:6]) == b"\x7fELF\x02\x01" and len(data) >= _HEADER.size


def machine(data: memoryview) -> int:
    """The ELF machine of a file that `is_elf64` accepts."""
    return int(_HEADER.unpack_from(data)[2])


def find_sections(data: memoryview, names: Sequence[str] = (),
                  types: Collection[int] = ()) -> list[Extent]:
    """The sections with one of these names or types, in the order of the section table.

    Raises `BundleError` when the tables or one of these sections lie outside the file.
    """
    if not is_elf64(data):
        raise BundleError("the ELF header is truncated")
    (*_, table, _, _, _, _, entry_size, count, names_index) = _HEADER.unpack_from(data)
    if not table:
        return []
    if entry_size != _SECTION.size or table + _SECTION.size > len(data):
        raise BundleError("the section header table is malformed or lies outside the file")
    # Counts that do not fit the header are in the first section (System V ABI, "Sections").
    first = _SECTION.unpack_from(data, table)
    count = count or first[5]
    names_index = first[6] if names_index == _SHN_XINDEX else names_index
    end = table + count * _SECTION.size
    if count > SECTION_LIMIT or end > len(data) or names_index >= count:
        raise BundleError("the section header table is malformed or lies outside the file")
    start, size = _SECTION.unpack_from(data, table + names_index * _SECTION.size)[4:6]
    if start + size > len(data):
        raise BundleError("truncated: the section names lie outside the file")
    strings = bytes(data[start:start + size])
    texts = {name: name.encode() + b"\0" for name in names}
    found = []
    for position, kind, flags, _, offset, size, *_ in _SECTION.iter_unpack(data[table:end]):
        if kind in (_SHT_NULL, _SHT_NOBITS):
            continue
        name = next((n for n, text in texts.items() if strings.startswith(text, position)), "")
        if not name and kind not in types:
            continue
        if offset + size > len(data):
            raise BundleError(f"truncated: section '{name}' ends at byte {offset + size} of a "
                              f"file of {len(data)} bytes")
        found.append(Extent(name, flags, offset, size))
    return found
