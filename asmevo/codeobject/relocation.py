"""Dynamic relocations: the pointers in a code object that the loader fills in."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.elf import SYMBOL_LIMIT, read_names
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.symbols import checked

_ENTRY = struct.Struct("<QQq")
_SYMBOL = struct.Struct("<IBBHQQ")
# LLVM "User Guide for AMDGPU Backend", table "AMDGPU ELF Relocation Records".
_ABS64 = 3
_RELATIVE64 = 13


@dataclass(frozen=True, slots=True)
class Relocation:
    """Eight bytes at ``address`` that become a symbol's value or the load address, plus ``addend``.

    Without a ``symbol`` the addend is an address within the object.
    """

    address: int
    symbol: str | None
    addend: int


def relocations(code_object: CodeObject) -> tuple[Relocation, ...]:
    """The entries of ``.rela.dyn``; raises `CodeObjectError` on types that AsmEvo does not know."""
    tables = [s for s in code_object.sections if s.type == "SHT_RELA"]
    found: list[Relocation] = []
    for table in tables:
        data = code_object.section_data(table)
        if len(data) % _ENTRY.size or len(data) > SYMBOL_LIMIT * _ENTRY.size:
            raise CodeObjectError("the relocation table is malformed")
        names = _symbol_names(code_object) if data else ()
        for offset, info, addend in _ENTRY.iter_unpack(data):
            kind, index = info & 0xFFFFFFFF, info >> 32
            if kind == _RELATIVE64 and not index:
                found.append(Relocation(offset, None, addend))
            elif kind == _ABS64 and 0 < index < len(names):
                found.append(Relocation(offset, checked(names[index]), addend))
            else:
                raise CodeObjectError(f"recovery does not handle relocation type {kind} at address "
                                      f"{offset:#x}")
    return tuple(found)


def _symbol_names(code_object: CodeObject) -> tuple[str, ...]:
    table = code_object.section(".dynsym")
    data = code_object.section_data(table)
    if len(data) % _SYMBOL.size or table.link >= len(code_object.sections):
        raise CodeObjectError("the dynamic symbol table is malformed")
    strings = code_object.section_data(code_object.sections[table.link])
    return read_names(strings, [entry[0] for entry in _SYMBOL.iter_unpack(data)])
