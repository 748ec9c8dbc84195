"""An AMDGPU code object: the ELF container, its symbols, kernels and metadata."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.codeobject.descriptor import DESCRIPTOR_SIZE, KernelDescriptor
from asmevo.codeobject.elf import Section, Symbol, read_notes, read_tables, read_target
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.metadata import decode_metadata
from asmevo.codeobject.target import Target

_NT_AMDGPU_METADATA = 32


@dataclass(frozen=True, slots=True)
class Argument:
    """One kernel argument of the metadata; ``offset`` and ``size`` in bytes of the kernarg."""

    name: str
    offset: int
    size: int
    value_kind: str
    address_space: str | None
    access: str | None
    value_type: str | None


@dataclass(frozen=True, eq=False)
class Kernel:
    """One kernel of a code object.

    ``entry`` is a byte offset into ``.text``; the code extends ``size`` bytes, to the next function
    or the end of the section, because the symbol's own size is 0 in hand-written objects.
    """

    symbol: str
    entry: int
    size: int
    descriptor: KernelDescriptor
    metadata: Mapping[str, object]
    kernarg_segment_size: int
    kernarg_segment_align: int
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, eq=False)
class CodeObject:
    """The bytes of a code object and what they say; identified by ``sha256``.

    ``version`` is the code object version (4, 5 or 6) that the ELF ABI version stands for.
    """

    data: bytes
    sha256: str
    target: Target
    version: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    kernels: tuple[Kernel, ...]
    metadata: Mapping[str, object]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CodeObject) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.sha256)

    @classmethod
    def parse(cls, data: bytes) -> CodeObject:
        """Take a code object apart. Raises `CodeObjectError` on any other bytes."""
        data = bytes(data)
        target, version = read_target(data)
        sections, symbols = read_tables(data)
        parsed = cls(data, hashlib.sha256(data).hexdigest(), target, version, sections, symbols,
                     kernels=(), metadata={})
        metadata = decode_metadata(parsed.metadata_note())
        kernels = _kernels(parsed, metadata)
        return cls(data, parsed.sha256, target, version, sections, symbols, kernels, metadata)

    def section(self, name: str) -> Section:
        """The section of that name; raises `CodeObjectError` when there is none or several."""
        found = [s for s in self.sections if s.name == name]
        if len(found) != 1:
            raise CodeObjectError(f"the object has {len(found) or 'no'} sections named '{name}'")
        return found[0]

    def section_data(self, section: Section) -> bytes:
        """The file bytes of a section; none for one that occupies no file space."""
        if not section.occupies_file:
            return b""
        return self.data[section.offset:section.offset + section.size]

    def bytes_at(self, address: int, size: int) -> bytes:
        """File bytes behind a virtual address range; raises when no section holds all of it."""
        for section in self.sections:
            inside = section.address <= address and address + size <= section.address + section.size
            if inside and section.occupies_file and section.address:
                start = section.offset + address - section.address
                return self.data[start:start + size]
        raise CodeObjectError(f"no section holds {size} bytes at address {address:#x}")

    def metadata_note(self) -> bytes:
        """The msgpack bytes of the AMDGPU metadata note."""
        for section in self.sections:
            if section.type == "SHT_NOTE":
                for owner, kind, description in read_notes(self.section_data(section)):
                    if owner == b"AMDGPU" and kind == _NT_AMDGPU_METADATA:
                        return description
        raise CodeObjectError("the object has no AMDGPU metadata note")

    def kernel(self, symbol: str | None = None) -> Kernel:
        """A kernel by symbol, or the only one; otherwise `CodeObjectError` lists what is there."""
        names = ", ".join(k.symbol for k in self.kernels) or "none"
        if symbol is None:
            if len(self.kernels) != 1:
                raise CodeObjectError(f"the object has {len(self.kernels)} kernels, name one: "
                                      f"{names}")
            return self.kernels[0]
        for kernel in self.kernels:
            if kernel.symbol == symbol:
                return kernel
        raise CodeObjectError(f"the object has no kernel '{symbol}'; its kernels: {names}")

    def code(self, kernel: Kernel) -> bytes:
        """The machine code of a kernel."""
        return self.section_data(self.section(".text"))[kernel.entry:kernel.entry + kernel.size]


def _kernels(code_object: CodeObject, metadata: Mapping[str, object]) -> tuple[Kernel, ...]:
    text = code_object.section(".text")
    functions = {s.name: s.value for s in code_object.symbols
                 if s.type == "FUNC" and s.section == ".text"}
    starts = sorted({*functions.values(), text.address + text.size})
    objects = {s.name: s for s in code_object.symbols if s.type in ("OBJECT", "AMDGPU_HSA_KERNEL")}
    kernels: dict[str, Kernel] = {}
    entries = metadata.get("amdhsa.kernels", [])
    if not isinstance(entries, list):
        raise CodeObjectError("the metadata's amdhsa.kernels is not a list")
    for entry in entries:
        if not isinstance(entry, dict):
            raise CodeObjectError("the metadata describes a kernel that is not a map")
        handle = entry.get(".symbol")
        if not isinstance(handle, str) or not handle.endswith(".kd"):
            raise CodeObjectError("the metadata names a kernel without a '.kd' symbol")
        symbol = handle.removesuffix(".kd")
        if symbol in kernels:
            raise CodeObjectError(f"the metadata describes kernel '{symbol}' twice")
        if handle not in objects or symbol not in functions:
            raise CodeObjectError(f"the object has no symbols for its kernel '{symbol}'")
        address = objects[handle].value
        descriptor = KernelDescriptor.parse(code_object.bytes_at(address, DESCRIPTOR_SIZE))
        start = functions[symbol]
        if address + descriptor.kernel_code_entry_byte_offset != start:
            raise CodeObjectError(f"the descriptor of kernel '{symbol}' does not point to its code")
        if not text.address <= start < text.address + text.size or start % 4:
            raise CodeObjectError(f"the code of kernel '{symbol}' lies outside .text")
        stop = starts[bisect.bisect_right(starts, start)]
        kernels[symbol] = Kernel(
            symbol=symbol, entry=start - text.address, size=stop - start, descriptor=descriptor,
            metadata=entry,
            kernarg_segment_size=_integer(entry, ".kernarg_segment_size", symbol),
            kernarg_segment_align=_integer(entry, ".kernarg_segment_align", symbol),
            arguments=tuple(_argument(a, symbol) for a in _list(entry, ".args", symbol)),
        )
    return tuple(kernels.values())


def _argument(entry: object, symbol: str) -> Argument:
    if not isinstance(entry, dict):
        raise CodeObjectError(f"an argument of kernel '{symbol}' is not a map in the metadata")

    def text(key: str) -> str | None:
        value = entry.get(key)
        return value if isinstance(value, str) else None

    return Argument(
        name=text(".name") or "", offset=_integer(entry, ".offset", symbol),
        size=_integer(entry, ".size", symbol), value_kind=text(".value_kind") or "",
        address_space=text(".address_space"), value_type=text(".value_type"),
        access=text(".access") or text(".actual_access"),
    )


def _integer(entry: Mapping[str, object], key: str, symbol: str) -> int:
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32:
        raise CodeObjectError(f"the metadata of kernel '{symbol}' has no valid '{key}'")
    return value


def _list(entry: Mapping[str, object], key: str, symbol: str) -> list[object]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise CodeObjectError(f"'{key}' of kernel '{symbol}' is not a list in the metadata")
    return value
