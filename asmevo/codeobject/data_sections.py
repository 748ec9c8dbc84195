"""Sections that hold data: descriptors, constants, variables, debug information."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.descriptor import DESCRIPTOR_SIZE, KernelDescriptor
from asmevo.codeobject.elf import Section, Symbol
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.labels import Labels
from asmevo.codeobject.symbols import checked

# Sections that the assembler and linker make by themselves, or from other parts of the text.
_MADE = frozenset({
    "", ".note", ".dynsym", ".gnu.hash", ".hash", ".dynstr", ".rela.dyn", ".text", ".dynamic",
    ".got", ".relro_padding", ".comment", ".symtab", ".shstrtab", ".strtab",
})
_TYPES = {"SHT_PROGBITS": "progbits", "SHT_NOBITS": "nobits", "SHT_INIT_ARRAY": "init_array",
          "SHT_FINI_ARRAY": "fini_array", "SHT_NOTE": "note"}
_WRITE, _ALLOC, _MERGE, _STRINGS = 1, 2, 0x10, 0x20
_FLAGS = {_WRITE: "w", _ALLOC: "a", _MERGE: "M", _STRINGS: "S"}
_WORDS = 8
_POINTER_SIZE = 8
# More than this of zeros is worth a directive of its own.
_ZEROS = re.compile(rb"(?:\0{4}){8,}")


def data_sections(code_object: CodeObject) -> tuple[Section, ...]:
    """The sections to write, in file order; `CodeObjectError` names one that cannot be."""
    found = []
    for section in code_object.sections:
        if section.name in _MADE:
            continue
        if section.type not in _TYPES or section.flags & ~sum(_FLAGS):
            raise CodeObjectError(f"recovery does not handle the section '{section.name}' "
                                  f"({section.type}, flags {section.flags:#x})")
        checked(section.name)
        found.append(section)
    return tuple(found)


def data_lines(code_object: CodeObject, section: Section, labels: Labels,
               descriptors: Mapping[str, KernelDescriptor]) -> Iterator[str]:
    """The directives that make one section again.

    ``descriptors`` are by kernel symbol, and stand where the object's own do.
    """
    yield from _opened(section)
    events = _events(code_object, section, labels, descriptors)
    data = code_object.section_data(section)
    position = 0
    for offset in sorted(events):
        if not position <= offset <= section.size:
            raise CodeObjectError(f"what section '{section.name}' holds at offset {offset:#x} "
                                  "overlaps or lies outside")
        yield from _raw(data, position, offset)
        lines, size = events[offset]
        yield from lines
        position = offset + size
    yield from _raw(data, position, section.size)


def log2(alignment: int, section: str) -> int:
    """The exponent of an alignment, which must be a power of two of sensible size."""
    if alignment <= 0 or alignment & (alignment - 1) or alignment > 1 << 16:
        raise CodeObjectError(f"section '{section}' has the alignment {alignment}")
    return alignment.bit_length() - 1


def _opened(section: Section) -> Iterator[str]:
    flags = "".join(letter for bit, letter in _FLAGS.items() if section.flags & bit)
    kind = _TYPES[section.type]
    if section.flags & _MERGE and not section.entry_size:
        # The linker put constants and strings of several sizes beside other data: their flags stay,
        # an entry size does not. An empty section of the same name brings the flags alone.
        yield f'\t.section {section.name},"{flags}",@{kind},1,unique,0'
        flags = flags.replace("M", "").replace("S", "")
    size = f",{section.entry_size}" if "M" in flags else ""
    yield f'\t.section {section.name},"{flags}",@{kind}{size}'
    if section.alignment > 1:
        yield f"\t.p2align {log2(section.alignment, section.name)}"


def _events(code_object: CodeObject, section: Section, labels: Labels,
            descriptors: Mapping[str, KernelDescriptor]) -> dict[int, tuple[list[str], int]]:
    """What stands at offsets of a section beside raw bytes: directives, and the bytes they make."""
    events: dict[int, tuple[list[str], int]] = {}
    end = section.address + section.size

    def add(offset: int, line: list[str], size: int) -> None:
        before, taken = events.get(offset, ([], 0))
        if taken:
            raise CodeObjectError(f"section '{section.name}' holds two things at {offset:#x}")
        events[offset] = (before + line, size)

    if not section.flags & _ALLOC:
        return events
    handles = {f"{symbol}.kd" for symbol in descriptors}
    for address in labels.between(section.address, end + 1):
        lines = [line for s in labels.symbols.get(address, ())
                 if s.section == section.name and s.name not in handles for line in _label(s)]
        synthetic = labels.synthetic.get(address, "")
        if synthetic.startswith(f".L{section.name}_"):
            lines.append(f"{synthetic}:")
        if lines:
            add(address - section.address, lines, 0)
    addresses = {s.name: s.value for s in code_object.symbols}
    for symbol, descriptor in descriptors.items():
        address = addresses[f"{symbol}.kd"]
        if section.address <= address < end:
            add(address - section.address,
                [f"\t.amdhsa_kernel {symbol}",
                 *(f"\t\t{d}" for d in descriptor.directives(code_object.target.isa)),
                 "\t.end_amdhsa_kernel"], DESCRIPTOR_SIZE)
    for address, relocation in labels.relocations.items():
        if section.address <= address < end:
            add(address - section.address, [f"\t.quad {labels.pointer(relocation)}"], _POINTER_SIZE)
    for pointer in labels.frames:
        if section.address <= pointer.address < end:
            directive = {4: ".long", 8: ".quad"}[pointer.size]
            add(pointer.address - section.address,
                [f"\t{directive} {labels.reference(pointer.target)}-."], pointer.size)
    return events


def _label(symbol: Symbol) -> list[str]:
    size = [f"\t.size {symbol.name}, {symbol.size}"] if symbol.size else []
    return [f"{symbol.name}:", *size]


def _raw(data: bytes, start: int, stop: int) -> Iterator[str]:
    """Bytes as words where they are whole ones, with a directive for many zeros."""
    if start >= stop:
        return
    if not data:
        yield f"\t.zero {stop - start}"
        return
    whole = start + (stop - start) // 4 * 4
    position = start
    for match in _ZEROS.finditer(data, start, whole):
        zeros = match.start() + -(match.start() - start) % 4
        if match.end() - zeros < 4 * _WORDS:
            continue
        yield from _words(data, position, zeros)
        position = zeros + (match.end() - zeros) // 4 * 4
        yield f"\t.zero {position - zeros}"
    yield from _words(data, position, whole)
    if whole < stop:
        yield "\t.byte " + ", ".join(f"0x{byte:02x}" for byte in data[whole:stop])


def _words(data: bytes, start: int, stop: int) -> Iterator[str]:
    for at in range(start, stop, 4 * _WORDS):
        words = (data[i:i + 4] for i in range(at, min(at + 4 * _WORDS, stop), 4))
        yield "\t.long " + ", ".join(f"0x{int.from_bytes(w, 'little'):08x}" for w in words)
