"""What the host sees of a kernel, and what of an object an edit may not touch."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields

from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.descriptor_fields import FIELDS
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.relocation import relocations

# A rebuild recomputes these from the edited code; everything else in them is frozen.
RESOURCE_FIELDS = frozenset({"granulated_workitem_vgpr_count", "granulated_wavefront_sgpr_count",
                             "accum_offset"})
RESOURCE_KEYS = frozenset({".vgpr_count", ".agpr_count", ".sgpr_count"})
# s_nop 0 and the linker's zeros, which fill code up to an alignment.
_PADDING = ((0xBF800000).to_bytes(4, "little"), bytes(4))


@dataclass(frozen=True, slots=True)
class Interface:
    """The frozen ABI of one kernel.

    ``symbols`` are name, type, binding, visibility and section of every symbol. ``launch`` is the
    kernel's metadata without resource counts and arguments (workgroup sizes, wavefront size, ...)
    and ``arguments`` the arguments', both as canonical JSON. ``descriptor_bits`` are all bit fields
    of the descriptor but the register counts, the FP mode apart as ``float_mode``.
    """

    target: str
    version: int
    sections: tuple[str, ...]
    symbols: tuple[tuple[str, str, str, str, str], ...]
    kernels: tuple[str, ...]
    kernarg_segment_size: int
    kernarg_segment_align: int
    descriptor_kernarg_size: int
    arguments: tuple[str, ...]
    launch: str
    descriptor_bits: tuple[tuple[str, int], ...]
    float_mode: tuple[tuple[str, int], ...]
    group_segment_fixed_size: int
    private_segment_fixed_size: int

    @classmethod
    def of(cls, code_object: CodeObject, kernel: Kernel) -> Interface:
        """The interface of one kernel of an object."""
        descriptor = kernel.descriptor
        bits = tuple((f.name, descriptor.field(f.name)) for f in FIELDS
                     if f.name not in RESOURCE_FIELDS)
        launch = {k: v for k, v in kernel.metadata.items()
                  if k not in RESOURCE_KEYS and k != ".args"}
        arguments = kernel.metadata.get(".args", [])
        return cls(
            target=code_object.target.triple,
            version=code_object.version,
            sections=tuple(s.name for s in code_object.sections),
            symbols=_symbols(code_object),
            kernels=tuple(k.symbol for k in code_object.kernels),
            kernarg_segment_size=kernel.kernarg_segment_size,
            kernarg_segment_align=kernel.kernarg_segment_align,
            descriptor_kernarg_size=descriptor.kernarg_size,
            arguments=tuple(_json(a) for a in arguments) if isinstance(arguments, list) else (),
            launch=_json(launch),
            descriptor_bits=tuple(b for b in bits if not _is_float_mode(b[0])),
            float_mode=tuple(b for b in bits if _is_float_mode(b[0])),
            group_segment_fixed_size=descriptor.group_segment_fixed_size,
            private_segment_fixed_size=descriptor.private_segment_fixed_size,
        )


def differences(a: Interface, b: Interface) -> tuple[str, ...]:
    """One phrase for each part of the interface in which ``b`` differs from ``a``."""
    found: list[str] = []
    for field in fields(Interface):
        before, after = getattr(a, field.name), getattr(b, field.name)
        if before == after:
            continue
        name = field.name.replace("_", " ")
        if field.name in ("descriptor_bits", "float_mode"):
            found += [f"{key}: {old} became {dict(after).get(key)}" for key, old in before
                      if dict(after).get(key) != old]
        elif isinstance(before, tuple):
            odd = [x for x in (*before, *after) if (x in before) != (x in after)]
            found.append(f"{name}: {odd[0]!r} is not in both" if odd else f"{name}: order changed")
        else:
            found.append(f"{name}: {before!r} became {after!r}")
    return tuple(found)


def outside_hash(code_object: CodeObject, kernel: Kernel) -> str:
    """SHA-256 over everything that editing ``kernel`` may not change.

    That is the whole object but the kernel's code, its register counts in descriptor and metadata,
    and the addresses, offsets and sizes that move when code grows or shrinks. Raises
    `CodeObjectError` for relocations of unknown kinds.
    """
    digest = hashlib.sha256()

    def add(*values: object) -> None:
        digest.update(_json(values).encode() + b"\0")

    add(code_object.target.triple, code_object.version, _symbols(code_object))
    for section in code_object.sections:
        add(section.name, section.type, section.flags, section.alignment, section.entry_size,
            section.link)
        data = code_object.section_data(section)
        if section.name == ".text":
            add(_frozen_code(code_object, 0, kernel.entry),
                _frozen_code(code_object, kernel.entry + kernel.size, section.size))
        elif section.name == ".rodata":
            add(_without_descriptors(code_object, data, section.address).hex())
        elif section.name in (".comment", ".dynstr", ".strtab", ".shstrtab", ".hash", ".gnu.hash"):
            add(data.hex())
        elif section.type == "SHT_RELA":
            add([(_place(code_object, r.address), r.symbol,
                  r.addend if r.symbol else _place(code_object, r.addend))
                 for r in relocations(code_object)])
        elif section.name == ".dynamic":
            add([data[i:i + 8].hex() for i in range(0, len(data), 16)])
        elif section.name not in (".note", ".symtab", ".dynsym", ".relro_padding"):
            add(data.hex())
    for other in code_object.kernels:
        add(other.symbol, _frozen_descriptor(other.descriptor, other.symbol == kernel.symbol))
    base = code_object.section(".text").address
    add([(s.name, s.value - base) for s in code_object.symbols
         if s.section == ".text" and s.value - base < kernel.entry])
    add(_frozen_metadata(code_object.metadata, f"{kernel.symbol}.kd"))
    return digest.hexdigest()


def _frozen_code(code_object: CodeObject, start: int, stop: int) -> list[object]:
    """The functions between two offsets of ``.text``, as far as their places do not matter."""
    base = code_object.section(".text").address
    starts = {s.value - base for s in code_object.symbols
              if s.type == "FUNC" and s.section == ".text"}
    edges = [start, *sorted(s for s in starts if start < s < stop), stop]
    return [_frozen_function(code_object, *pair) for pair in itertools.pairwise(edges)]


def _frozen_function(code_object: CodeObject, start: int, stop: int) -> list[object]:
    """Code without the padding behind it, PC-relative distances replaced by what they name.

    Both change when code elsewhere grows or shrinks.
    """
    # Whoever only compares interfaces needs no disassembler, which takes long to import.
    from asmevo.codeobject.code_address import code_addresses
    from asmevo.codeobject.disassemble import rows

    text = code_object.section(".text")
    code = bytearray(code_object.section_data(text)[start:stop])
    while code[-4:] in _PADDING and len(code) >= 4:
        del code[-4:]
    listing = rows(bytes(code), code_object.target)
    try:
        addresses = tuple(code_addresses(bytes(code), listing))
    except CodeObjectError:
        return [code.hex()]
    places: list[object] = []
    for address in addresses:
        places.append(_place(code_object, text.address + start + address.base + address.value))
        for row in (address.low, address.high):
            if row >= 0:
                offset, size, _ = listing[row]
                code[offset + 4:offset + size] = bytes(size - 4)
    return [code.hex(), *places]


def _place(code_object: CodeObject, address: int) -> tuple[str, int]:
    """What lies at a virtual address: the function or else the section, and the offset in it."""
    for section in code_object.sections:
        if section.address and section.address <= address < section.address + section.size:
            functions = [s for s in code_object.symbols if s.type == "FUNC"
                         and s.section == section.name and s.value <= address]
            nearest = max(functions, key=lambda s: s.value, default=None)
            if nearest is not None:
                return nearest.name, address - nearest.value
            return section.name, address - section.address
    return "", address


def _without_descriptors(code_object: CodeObject, data: bytes, address: int) -> bytes:
    """Read-only data with the descriptors, which are hashed by field, blanked out."""
    blanked = bytearray(data)
    for symbol in code_object.symbols:
        if symbol.section == ".rodata" and symbol.name.endswith(".kd"):
            start = symbol.value - address
            blanked[start:start + 64] = bytes(64)
    return bytes(blanked)


def _frozen_descriptor(descriptor: KernelDescriptor, edited: bool) -> list[object]:
    masked = RESOURCE_FIELDS if edited else frozenset()
    return [descriptor.group_segment_fixed_size, descriptor.private_segment_fixed_size,
            descriptor.kernarg_size, descriptor.reserved.hex(),
            [descriptor.field(f.name) for f in FIELDS if f.name not in masked]]


def _frozen_metadata(metadata: Mapping[str, object], handle: str) -> object:
    kernels = metadata.get("amdhsa.kernels")
    if not isinstance(kernels, list):
        return metadata
    frozen = [{k: v for k, v in entry.items() if k not in RESOURCE_KEYS}
              if entry.get(".symbol") == handle else entry for entry in kernels]
    return {**metadata, "amdhsa.kernels": frozen}


def _symbols(code_object: CodeObject) -> tuple[tuple[str, str, str, str, str], ...]:
    return tuple((s.name, s.type, s.binding, s.visibility, s.section)
                 for s in code_object.symbols)


def _is_float_mode(name: str) -> bool:
    return name.startswith("float_") or name in ("enable_dx10_clamp", "enable_ieee_mode",
                                                 "fp16_ovfl")


def _json(value: object) -> str:
    return json.dumps(value)
