"""What every address of a code object is called in its text."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.codeobject.code_address import CodeAddress, code_addresses
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import branch_target
from asmevo.codeobject.eh_frame import FramePointer, frame_pointers
from asmevo.codeobject.elf import Section, Symbol
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.functions import Function, code_of, functions, listing
from asmevo.codeobject.per_object import per_object
from asmevo.codeobject.relocation import Relocation, relocations

_GOT = ".got"


@dataclass(frozen=True, eq=False, slots=True)
class Labels:
    """Names of the addresses that code or data refers to.

    ``synthetic`` are the names made up for addresses without a symbol; they start with ``.L``, so
    that the assembler keeps them out of the symbol table. ``branch_names`` are by offset of
    ``.text``, ``code_addresses`` by the function's entry, ``relocations`` by address.
    """

    synthetic: Mapping[int, str]
    symbols: Mapping[int, tuple[Symbol, ...]]
    branch_names: Mapping[int, str]
    code_addresses: Mapping[int, tuple[CodeAddress, ...]]
    relocations: Mapping[int, Relocation]
    frames: tuple[FramePointer, ...]
    got: Section | None
    text_address: int
    addresses: tuple[int, ...]

    def between(self, start: int, stop: int) -> tuple[int, ...]:
        """The addresses in a range that have a symbol or a synthetic name, in order."""
        return self.addresses[bisect.bisect_left(self.addresses, start):
                              bisect.bisect_left(self.addresses, stop)]

    def reference(self, address: int) -> str:
        """A name that the linker may resolve to ``address`` when it links."""
        for symbol in self.symbols.get(address, ()):
            if _bound(symbol):
                return symbol.name
        return self.synthetic[address]

    def target(self, address: int) -> tuple[str, str]:
        """Name and kind (``rel32`` or ``gotpcrel32``) for an address that code computes."""
        if self.got is None or not _inside(self.got, address):
            return self.reference(address), "rel32"
        return self.pointer(self.relocations[address]), "gotpcrel32"

    def pointer(self, relocation: Relocation) -> str:
        """The expression for what the loader writes."""
        if relocation.symbol is None:
            return self.reference(relocation.addend)
        return relocation.symbol + (f"{relocation.addend:+d}" if relocation.addend else "")


@per_object
def labels_of(code_object: CodeObject) -> Labels:
    """Find everything that needs a name. Raises `CodeObjectError` for what cannot get one."""
    text = code_object.section(".text")
    names = _Names(code_object)
    computed: dict[int, tuple[CodeAddress, ...]] = {}
    branches: dict[int, str] = {}
    local: dict[int, str] = {}
    for symbol in code_object.symbols:
        if symbol.binding == "LOCAL" and symbol.type == "NOTYPE" and symbol.section == text.name:
            local.setdefault(symbol.value - text.address, symbol.name)
    all_functions = functions(code_object)
    for function in all_functions:
        rows = listing(code_object, function)
        _find_branches(code_object, function, all_functions, local, names, branches)
        if any(row[2].startswith("s_getpc") for row in rows):
            computed[function.entry] = tuple(
                code_addresses(code_of(code_object, function), rows))
    frames = frame_pointers(code_object)
    moved = {r.address: r for r in relocations(code_object)}
    got = next((s for s in code_object.sections if s.name == _GOT), None)
    for function in all_functions:
        for found in computed.get(function.entry, ()):
            address = text.address + function.entry + found.base + found.value
            if got is None or not _inside(got, address):
                names.need(address)
            elif address not in moved:
                raise CodeObjectError(f"the address {address:#x} lies inside an entry of {_GOT}")
    for relocation in moved.values():
        if relocation.symbol is None:
            names.need(relocation.addend)
    for pointer in frames:
        names.need(pointer.target)
    return Labels(names.synthetic, names.symbols, branches, computed, moved, frames, got,
                  text.address, tuple(sorted({*names.synthetic, *names.symbols})))


class _Names:
    """Symbols by address, and names for the addresses that have none."""

    def __init__(self, code_object: CodeObject) -> None:
        self._sections = [s for s in code_object.sections if s.address and s.size]
        self._taken = {s.name for s in code_object.symbols}
        self.synthetic: dict[int, str] = {}
        self.symbols: dict[int, tuple[Symbol, ...]] = {}
        known = {s.name for s in self._sections}
        for symbol in code_object.symbols:
            if symbol.section in known and symbol.name != "_DYNAMIC":
                self.symbols[symbol.value] = (*self.symbols.get(symbol.value, ()), symbol)

    def need(self, address: int) -> None:
        """Make sure that an address has a name that the linker resolves within the object."""
        if not any(_bound(symbol) for symbol in self.symbols.get(address, ())):
            self.make(address)

    def make(self, address: int) -> str:
        if address not in self.synthetic:
            section = self._section(address)
            middle = "" if section.name == ".text" else section.name
            self.synthetic[address] = self._fresh(f".L{middle}_{address - section.address:04x}")
        return self.synthetic[address]

    def _section(self, address: int) -> Section:
        for section in self._sections:
            if _inside(section, address):
                return section
        for section in self._sections:
            if address == section.address + section.size:
                return section
        raise CodeObjectError(f"the object refers to address {address:#x}, where it has no section")

    def _fresh(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def _find_branches(code_object: CodeObject, function: Function,
                   all_functions: tuple[Function, ...], local: Mapping[int, str], names: _Names,
                   branches: dict[int, str]) -> None:
    base = code_object.section(".text").address
    size = all_functions[-1].end
    for offset, _, text in listing(code_object, function):
        target = branch_target(offset, text)
        if target is None:
            continue
        target += function.entry
        if not 0 <= target <= size:
            raise CodeObjectError(f"the branch at offset {function.entry + offset:#x} leaves the "
                                  "code")
        if target not in branches:
            branches[target] = local.get(target) or names.make(base + target)


def _bound(symbol: Symbol) -> bool:
    """Whether the symbol's value is fixed when the object is linked, rather than by the loader."""
    return symbol.binding == "LOCAL" or symbol.visibility != "DEFAULT"


def _inside(section: Section, address: int) -> bool:
    return section.address <= address < section.address + section.size
