"""The tables of a 64-bit little-endian AMDGPU ELF file, read without trusting any of them.

pyelftools, which names the constants here, reads names to the next zero byte wherever that is, so
that a hostile file of a few megabytes can keep it busy for hours.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from elftools.elf.enums import (
    ENUM_SH_TYPE_BASE,
    ENUM_ST_INFO_BIND,
    ENUM_ST_INFO_TYPE,
    ENUM_ST_VISIBILITY,
)

from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.target import EM_AMDGPU, Target

# Far above any real object; they bound the work that a hostile header can ask for.
SECTION_LIMIT = 1024
SYMBOL_LIMIT = 1 << 17
NAME_LIMIT = 1 << 14

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_PROGRAM_HEADER_SIZE = 56
_ELFOSABI_AMDGPU_HSA = 64
_SHN_LORESERVE = 0xFF00
_SPECIAL_SECTIONS = {0: "UND", 0xFFF1: "ABS", 0xFFF2: "COMMON"}


def _names(table: Mapping[str, int], prefix: str) -> dict[int, str]:
    """Constants by number; the first name of a number wins, vendor aliases come later."""
    result: dict[int, str] = {}
    for name, number in table.items():
        if isinstance(number, int):
            result.setdefault(number, name.removeprefix(prefix))
    return result


_SECTION_TYPES = _names(ENUM_SH_TYPE_BASE, "")
_SYMBOL_TYPES = _names(ENUM_ST_INFO_TYPE, "STT_")
_BINDINGS = _names(ENUM_ST_INFO_BIND, "STB_")
_VISIBILITIES = _names(ENUM_ST_VISIBILITY, "STV_")


@dataclass(frozen=True, slots=True)
class Section:
    """One section header; ``type`` is the ELF name (``SHT_PROGBITS``) or a hexadecimal number."""

    name: str
    type: str
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def occupies_file(self) -> bool:
        return self.type not in ("SHT_NOBITS", "SHT_NULL")


@dataclass(frozen=True, slots=True)
class Symbol:
    """One entry of ``.symtab``; ``section`` is a name, ``UND``, ``ABS`` or ``COMMON``.

    ``type``, ``binding`` and ``visibility`` are the ELF names without their ``STT_``, ``STB_`` and
    ``STV_`` prefix (``FUNC``, ``LOCAL``, ``PROTECTED``). ``name_offset`` is the name's place in the
    string table, which tells in what order a linker took the symbols up.
    """

    name: str
    value: int
    size: int
    type: str
    binding: str
    visibility: str
    section: str
    name_offset: int = 0


def read_target(data: bytes) -> tuple[Target, int]:
    """The target and code object version of an ELF header, after checking all of it."""
    if data[:4] != b"\x7fELF":
        raise CodeObjectError("not a code object: the file does not start with an ELF header")
    if len(data) < _HEADER.size:
        raise CodeObjectError("the ELF header is truncated")
    if data[4] != 2 or data[5] != 1:
        bits = {1: "32", 2: "64"}.get(data[4], "unknown")
        order = {1: "little", 2: "big"}.get(data[5], "unknown")
        raise CodeObjectError(f"not a code object: a {bits}-bit {order}-endian ELF file, code "
                              "objects are 64-bit little-endian")
    (ident, kind, machine, _, _, phoff, shoff, flags, _, phentsize, phnum, shentsize, shnum,
     shstrndx) = _HEADER.unpack_from(data)
    if machine != EM_AMDGPU:
        raise CodeObjectError(f"not a code object: ELF machine {machine} is not AMDGPU "
                              f"({EM_AMDGPU})")
    if ident[7] != _ELFOSABI_AMDGPU_HSA:
        raise CodeObjectError(f"the object's OS ABI {ident[7]} is not AMDGPU_HSA (64)")
    if kind != 3:
        raise CodeObjectError(f"ELF type {kind} is not a linked code object (3, ET_DYN)")
    if shentsize != _SECTION.size or not 0 < shnum <= SECTION_LIMIT or shstrndx >= shnum:
        raise CodeObjectError("the section header table is missing or malformed")
    if shoff + shnum * shentsize > len(data):
        raise CodeObjectError("truncated: the section header table lies outside the file")
    if phnum and (phentsize != _PROGRAM_HEADER_SIZE or phoff + phnum * phentsize > len(data)):
        raise CodeObjectError("the program header table is malformed or lies outside the file")
    target, version = Target.from_flags(flags, ident[8])
    return target, version


def read_tables(data: bytes) -> tuple[tuple[Section, ...], tuple[Symbol, ...]]:
    """Sections and ``.symtab`` of a file whose header `read_target` accepted."""
    (*_, shoff, _, _, _, _, _, shnum, shstrndx) = _HEADER.unpack_from(data)
    headers = [_SECTION.unpack_from(data, shoff + i * _SECTION.size) for i in range(shnum)]
    names = _extent(data, headers[shstrndx][4], headers[shstrndx][5], "section names")
    sections = [
        Section(_name(names, name), _SECTION_TYPES.get(kind, hex(kind)), *rest)
        for name, kind, *rest in headers
    ]
    _check_layout(sections, len(data))
    tables = [s for s in sections if s.type == "SHT_SYMTAB"]
    if len(tables) > 1:
        raise CodeObjectError("the object has several symbol tables")
    return tuple(sections), tuple(s for table in tables for s in _symbols(data, table, sections))


def _extent(data: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(data):
        raise CodeObjectError(f"truncated: the {what} lie outside the file")
    return data[offset:offset + size]


def _name(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset, offset + NAME_LIMIT)
    if offset >= len(table) or end < 0:
        raise CodeObjectError("a name does not end within its string table")
    try:
        return table[offset:end].decode("utf-8")
    except UnicodeDecodeError:
        raise CodeObjectError("a name is not valid UTF-8") from None


def read_names(table: bytes, offsets: Sequence[int]) -> tuple[str, ...]:
    """The names at offsets of a string table; raises `CodeObjectError` when one does not end."""
    return tuple(_name(table, offset) for offset in offsets)


def _check_layout(sections: list[Section], file_size: int) -> None:
    extents = sorted((s.offset, s.offset + s.size, s.name) for s in sections
                     if s.occupies_file and s.size)
    end, previous = _HEADER.size, "ELF header"
    for start, stop, name in extents:
        if stop > file_size:
            raise CodeObjectError(f"truncated: section '{name}' ends at byte {stop} of a file of "
                                  f"{file_size} bytes")
        if start < end:
            raise CodeObjectError(f"'{previous}' and '{name}' overlap in the file")
        end, previous = stop, name


def _symbols(data: bytes, table: Section, sections: list[Section]) -> list[Symbol]:
    if (table.entry_size != _SYMBOL.size or table.size % _SYMBOL.size
            or table.size > SYMBOL_LIMIT * _SYMBOL.size or table.link >= len(sections)):
        raise CodeObjectError("the symbol table is malformed")
    strings = sections[table.link]
    names = _extent(data, strings.offset, strings.size, "symbol names")
    entries = data[table.offset:table.offset + table.size]
    symbols = []
    for name, info, other, index, value, size in _SYMBOL.iter_unpack(entries):
        if 0 < index < len(sections):
            section = sections[index].name
        elif index == 0 or index >= _SHN_LORESERVE:
            section = _SPECIAL_SECTIONS.get(index, hex(index))
        else:
            raise CodeObjectError(f"a symbol refers to section {index} of {len(sections)}")
        symbols.append(Symbol(
            _name(names, name), value, size,
            _SYMBOL_TYPES.get(info & 0xF, hex(info & 0xF)),
            _BINDINGS.get(info >> 4, hex(info >> 4)),
            _VISIBILITIES.get(other & 3, ""), section, name,
        ))
    return symbols


def read_notes(data: bytes) -> list[tuple[bytes, int, bytes]]:
    """Owner, type and description of every note (System V ABI, "Note Section", 4-byte aligned)."""
    notes = []
    position = 0
    while position < len(data):
        if position + 12 > len(data):
            raise CodeObjectError("the note section is truncated")
        name_size, size, kind = struct.unpack_from("<III", data, position)
        name_start = position + 12
        start = name_start + (name_size + 3) // 4 * 4
        if start + size > len(data):
            raise CodeObjectError("a note is larger than its section")
        owner = data[name_start:name_start + name_size].rstrip(b"\0")
        notes.append((owner, kind, data[start:start + size]))
        position = start + (size + 3) // 4 * 4
    return notes
