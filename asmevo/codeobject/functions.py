"""The functions that a code object's ``.text`` consists of."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.disassemble import rows
from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.elf import Symbol
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.per_object import per_object


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A kernel or device function: everything from its symbol to the next one's.

    ``entry`` and ``size`` are in bytes of ``.text``; padding behind the code is included, because a
    symbol's own size may be 0. ``symbols`` are all that stand at the entry, ``symbol`` the one that
    the function goes by: a kernel's, else the first.
    """

    symbol: str
    entry: int
    size: int
    symbols: tuple[Symbol, ...]
    kernel: Kernel | None

    @property
    def end(self) -> int:
        return self.entry + self.size


@per_object
def functions(code_object: CodeObject) -> tuple[Function, ...]:
    """All functions in address order, without gaps between them.

    In front of the first there may be filler (`asmevo.codeobject.padding.filler_in_front`).
    """
    text = code_object.section(".text")
    starts: dict[int, list[Symbol]] = {}
    for symbol in code_object.symbols:
        if symbol.type == "FUNC" and symbol.section == ".text":
            starts.setdefault(symbol.value - text.address, []).append(symbol)
    bounds = sorted(starts)
    if text.size and not bounds:
        raise CodeObjectError("the object has code, but no function")
    if bounds and (bounds[0] < 0 or bounds[-1] >= text.size or any(b % 4 for b in bounds)):
        raise CodeObjectError("a function lies outside .text or at an odd address")
    kernels = {k.symbol: k for k in code_object.kernels}
    found: list[Function] = []
    for start, stop in zip(bounds, [*bounds[1:], text.size], strict=True):
        named = starts[start]
        if long := [s.name for s in named if s.size > stop - start]:
            raise CodeObjectError(f"the function '{long[0]}' does not end where the next starts")
        own = [kernels[s.name] for s in named if s.name in kernels]
        if len(own) > 1:
            raise CodeObjectError(f"kernels '{own[0].symbol}' and '{own[1].symbol}' share "
                                  "their code")
        name = own[0].symbol if own else named[0].name
        found.append(Function(name, start, stop - start, tuple(named), own[0] if own else None))
    return tuple(found)


def code_of(code_object: CodeObject, function: Function) -> bytes:
    """The machine code of a function."""
    text = code_object.section(".text")
    return code_object.data[text.offset + function.entry:text.offset + function.end]


@per_object
def _listings(code_object: CodeObject) -> dict[int, tuple[bytes, tuple[str, ...]]]:
    """Sizes and texts of each function's instructions, by its entry.

    Millions of rows fit into memory because equal texts, of which code is full, are one string.
    """
    texts: dict[str, str] = {}
    found: dict[int, tuple[bytes, tuple[str, ...]]] = {}
    for function in functions(code_object):
        decoded = rows(code_of(code_object, function), code_object.target)
        found[function.entry] = (bytes([size for _, size, _ in decoded]),
                                 tuple([texts.setdefault(text, text) for _, _, text in decoded]))
    return found


def listing(code_object: CodeObject, function: Function) -> tuple[Row, ...]:
    """The disassembled function; offsets count from its entry."""
    sizes, texts = _listings(code_object)[function.entry]
    return tuple(zip(itertools.accumulate(sizes, initial=0), sizes, texts, strict=False))
