"""Relocations of a linked code object that concern its code."""

from __future__ import annotations

import struct

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import CodeObjectError

_RELA = struct.Struct("<QQq")
_LIMIT = 1 << 20
# LLVM "User Guide for AMDGPU Backend", "Relocation Records": the field's size in bytes. The only
# one whose value does not come from a symbol is R_AMDGPU_RELATIVE64.
_SIZES = {1: 4, 2: 4, 3: 8, 4: 4, 5: 8, 6: 4, 7: 4, 8: 4, 9: 4, 10: 4, 11: 4, 13: 8, 14: 2}
_RELATIVE64 = 13


def text_references(
    code_object: CodeObject,
) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int, int], ...]]:
    """Relocations that point into ``.text``, and those that change it.

    The first are ``(description, offset pointed to)``, the second ``(description, offset, size)``;
    offsets count from the start of the section. Raises `CodeObjectError` for relocations without
    addends and unknown kinds.
    """
    text = code_object.section(".text")
    dynamic = _dynamic_values(code_object)
    into: list[tuple[str, int]] = []
    changing: list[tuple[str, int, int]] = []
    for section in code_object.sections:
        if section.type == "SHT_REL" and section.size:
            raise CodeObjectError(f"section '{section.name}' has relocations without addends")
        if section.type != "SHT_RELA":
            continue
        data = code_object.section_data(section)
        if len(data) % _RELA.size or len(data) > _LIMIT * _RELA.size:
            raise CodeObjectError(f"section '{section.name}' is not a table of relocations")
        for index, (place, info, addend) in enumerate(_RELA.iter_unpack(data)):
            kind, symbol = info & 0xFFFFFFFF, info >> 32
            if kind not in _SIZES:
                raise CodeObjectError(f"section '{section.name}' has a relocation of the unknown "
                                      f"kind {kind}")
            name = f"relocation {index} of '{section.name}'"
            if kind != _RELATIVE64 and symbol >= len(dynamic):
                raise CodeObjectError(f"{name} names a symbol that does not exist")
            value = addend + (0 if kind == _RELATIVE64 else dynamic[symbol])
            into.append((name, value - text.address))
            changing.append((name, place - text.address, _SIZES[kind]))
    inside = tuple((n, o) for n, o in into if 0 <= o <= text.size)
    return inside, tuple((n, o, s) for n, o, s in changing if o + s > 0 and o < text.size)


def _dynamic_values(code_object: CodeObject) -> tuple[int, ...]:
    """Values of the dynamic symbols, which relocations of a linked object refer to."""
    for section in code_object.sections:
        if section.type == "SHT_DYNSYM":
            data = code_object.section_data(section)
            return tuple(value for _, _, _, _, value, _ in
                         struct.iter_unpack("<IBBHQQ", data[:len(data) // 24 * 24]))
    return ()
