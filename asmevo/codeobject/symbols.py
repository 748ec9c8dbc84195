"""Directives that put a code object's symbols back into its tables, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.elf import Symbol
from asmevo.codeobject.errors import CodeObjectError

SYMBOL_NAME = re.compile(r"[A-Za-z_.][A-Za-z0-9_.$]*")

_TYPES = {"NOTYPE": None, "FUNC": "function", "OBJECT": "object"}
_VISIBILITIES = {"DEFAULT": None, "HIDDEN": "hidden", "PROTECTED": "protected",
                 "INTERNAL": "internal"}
# The linker's own.
_DYNAMIC = ("_DYNAMIC", "NOTYPE", "LOCAL", "HIDDEN", ".dynamic")


def own_symbols(code_object: CodeObject) -> tuple[Symbol, ...]:
    """The symbols that the text has to declare, in order, after checking that it can.

    Hidden symbols are local in the linked object, but had their place among the global ones. Raises
    `CodeObjectError` naming the first that is of an unknown kind.
    """
    places = {s.name for s in code_object.sections}
    found: list[Symbol] = []
    names: set[str] = set()
    for symbol in code_object.symbols:
        kind = (symbol.name, symbol.type, symbol.binding, symbol.visibility, symbol.section)
        if kind in (_DYNAMIC, ("", "NOTYPE", "LOCAL", "DEFAULT", "UND")):
            continue
        if (symbol.type not in _TYPES or symbol.binding not in ("LOCAL", "GLOBAL", "WEAK")
                or symbol.section not in places | {"ABS"} or not symbol.section):
            raise CodeObjectError(f"recovery does not handle the symbol {symbol.name!r} "
                                  f"({symbol.binding} {symbol.type} in {symbol.section})")
        if checked(symbol.name) in names:
            raise CodeObjectError(f"recovery does not handle two symbols named '{symbol.name}'")
        names.add(symbol.name)
        found.append(symbol)
    return tuple(sorted(found, key=lambda s: s.name_offset))


def declarations(code_object: CodeObject) -> Iterator[str]:
    """One or more directives for each symbol; declared first, symbols keep their places."""
    handles = {f"{k.symbol}.kd": k.symbol for k in code_object.kernels}
    for symbol in own_symbols(code_object):
        if symbol.binding == "LOCAL" and symbol.visibility == "DEFAULT":
            if symbol.section == "ABS":
                yield f"\t.set {symbol.name}, {symbol.value:#x}"
            else:
                yield f"\t.local {symbol.name}"
        else:
            yield f"\t.{'weak' if symbol.binding == 'WEAK' else 'globl'} {symbol.name}"
            if symbol.section == "ABS":
                yield f"\t.set {symbol.name}, {symbol.value:#x}"
        # `.amdhsa_kernel` gives the handle the function's visibility, then protects the function.
        shown = symbol.visibility
        if symbol.name in handles or f"{symbol.name}.kd" in handles:
            handle = symbol.name if symbol.name in handles else f"{symbol.name}.kd"
            shown = next((s.visibility for s in code_object.symbols if s.name == handle), shown)
        if symbol.name not in handles:
            if (directive := _VISIBILITIES.get(shown)) is not None:
                yield f"\t.{directive} {symbol.name}"
            if (kind := _TYPES[symbol.type]) is not None:
                yield f"\t.type {symbol.name},@{kind}"


def checked(name: str) -> str:
    """A symbol or section name that is safe to write into assembler input."""
    if not SYMBOL_NAME.fullmatch(name):
        raise CodeObjectError(f"recovery does not handle the symbol name {name!r}")
    return name
