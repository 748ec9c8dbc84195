"""Machine code to text: LLVM's listing of a kernel, its branch targets and their names."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping, Sequence

from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.disassembler import Row, shared
from asmevo.codeobject.elf import Symbol
from asmevo.codeobject.target import Target
from asmevo.isa.program import Program

# Only the 16-bit displacement distinguishes branches; SOPP is the one format that has it, and
# s_call_b64 (SOPK) the one other instruction.
_BRANCH = re.compile(r"(s_c?branch\w*|s_call_b64 \S+) (\d+)")
_BRANCH_STARTS = ("s_branch", "s_cbranch", "s_call")


@functools.lru_cache(maxsize=16)
def _decoded(isa: str, code: bytes) -> tuple[Row, ...]:
    return shared().rows(isa, code)


def rows(code: bytes, target: Target) -> tuple[Row, ...]:
    """Disassemble into ``(byte offset, size, text)`` rows that cover ``code`` without gaps.

    Text is LLVM's with single spaces; branches keep their numeric displacement. What LLVM cannot
    decode, or only with a remark, becomes a ``.long`` row (``.byte`` for a last incomplete word).
    """
    return _decoded(target.isa, bytes(code))


def disassembler_version() -> str:
    """LLVM's version and the distribution it comes from."""
    return shared().version()


def branch_target(offset: int, text: str) -> int | None:
    """Where a disassembled branch goes: a byte offset in the numbering of ``offset``, or `None`.

    CDNA3 ISA, "Program Control": PC of the next instruction plus the signed 16-bit dword count.
    """
    if not text.startswith(_BRANCH_STARTS):
        return None
    match = _BRANCH.fullmatch(text)
    if match is None:
        return None
    displacement = int(match[2])
    return offset + 4 + 4 * (displacement - 0x10000 if displacement & 0x8000 else displacement)


def local_symbols(code_object: CodeObject) -> tuple[Symbol, ...]:
    """The labels that the object keeps: local symbols of its code, in symbol table order."""
    return tuple(s for s in code_object.symbols if s.binding == "LOCAL" and s.type == "NOTYPE"
                 and s.section == ".text")


def labels(code_object: CodeObject, kernel: Kernel, listing: Sequence[Row]) -> Mapping[int, str]:
    """Names of a kernel's code offsets: its local symbols, and one for every other branch target.

    Synthetic names, from the offset in ``.text``, start with ``.L`` so that the assembler keeps
    them out of the symbol table.
    Where several symbols share an address the first names it.
    """
    base = code_object.section(".text").address + kernel.entry
    named: dict[int, str] = {}
    for symbol in local_symbols(code_object):
        if 0 <= symbol.value - base <= kernel.size:
            named.setdefault(symbol.value - base, symbol.name)
    taken = {s.name for s in code_object.symbols}
    starts = {offset for offset, _, _ in listing}
    for offset, _, text in listing:
        target = branch_target(offset, text)
        if target is not None and target not in named and target in starts:
            named[target] = _fresh(f".L_{kernel.entry + target:04x}", taken)
    return dict(sorted(named.items()))


def _fresh(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def program(code_object: CodeObject, symbol: str | None = None) -> Program:
    """Decode a kernel; raises `CodeObjectError` for an unknown one, and what `Program` raises."""
    kernel = code_object.kernel(symbol)
    listing = rows(code_object.code(kernel), code_object.target)
    return Program.from_disassembly(listing, labels(code_object, kernel, listing),
                                    isa=code_object.target.isa)


def whole_program(code_object: CodeObject, symbol: str | None = None) -> Program:
    """Decode a kernel and all other code of its object, so that its calls can be followed.

    Raises what `program` does.
    """
    kernel = code_object.kernel(symbol)
    text = code_object.section(".text")
    listing = [(offset - kernel.entry, size, line) for offset, size, line
               in rows(code_object.section_data(text), code_object.target)]
    functions = {s.value - text.address - kernel.entry: s.name for s in code_object.symbols
                 if s.type == "FUNC" and s.section == ".text"}
    return Program.from_disassembly(listing, functions, isa=code_object.target.isa)
