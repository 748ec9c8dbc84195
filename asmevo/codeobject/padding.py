"""Filler between pieces of code that stand at aligned addresses.

Kept as instructions, filler would move what follows it when an edit changes the code in front. Two
places have it: between functions, and in the prologue of a kernel whose arguments are preloaded
into SGPRs. Firmware that preloads enters such a kernel 256 bytes behind its symbol; older firmware
enters at the symbol, where code loads the arguments and branches (LLVM "User Guide for AMDGPU
Backend", section "Preloaded Kernel Arguments").
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from asmevo.codeobject.assembly import KernelBody
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import branch_target
from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.errors import CodeObjectError, RebuildError
from asmevo.codeobject.functions import Function, code_of, functions

# The command processor takes entry addresses in units of 256 bytes (LLVM, "Kernel Descriptor").
ENTRY_ALIGNMENT = 256
_NOP = "s_nop 0"
# What the assembler fills code up to an alignment with, and what the linker does.
_FILLER = frozenset({_NOP, "s_code_end", "v_cndmask_b32_e32 v0, s0, v0, vcc"})
_NOP_WORD = 0xBF800000


def alignment_in_front(code_object: CodeObject, function: Function) -> str:
    """The directive in front of a kernel; empty for a function that may start anywhere."""
    aligned = function.entry % ENTRY_ALIGNMENT == 0
    if function.kernel is not None and function.entry and aligned and (
            code_object.section(".text").alignment >= ENTRY_ALIGNMENT):
        return _p2align(ENTRY_ALIGNMENT)
    return ""


def filler_in_front(code_object: CodeObject) -> tuple[str, ...]:
    """The directive for one repeated word in front of the first function.

    Linkers leave it where a section had no functions but its trailing nops. Raises
    `CodeObjectError` when there is anything else.
    """
    first = functions(code_object)[0].entry
    text = code_object.section(".text")
    code = code_object.data[text.offset:text.offset + first]
    if not code:
        return ()
    if code != code[:4] * (first // 4):
        raise CodeObjectError("recovery does not handle code in front of the first function")
    return (f"\t.fill {first // 4}, 4, 0x{int.from_bytes(code[:4], 'little'):08x}",)


def padding_rows(code_object: CodeObject, function: Function, rows: Sequence[Row],
                 labelled: Container[int]) -> dict[int, str]:
    """The rows that an alignment directive makes, by index, each with the directive.

    ``labelled`` are offsets that something refers to. Raises `CodeObjectError` for a kernel with
    preloaded arguments whose second entry is not laid out as LLVM does.
    """
    padding = _behind(code_object, function, rows, labelled)
    if function.kernel is not None and function.kernel.descriptor.kernarg_preload_length:
        prologue = _prologue(rows, labelled)
        if prologue is None:
            raise CodeObjectError("recovery does not handle the kernarg preloading of kernel "
                                  f"'{function.symbol}': there is no padded branch to its second "
                                  "entry")
        padding |= dict.fromkeys(prologue, _p2align(ENTRY_ALIGNMENT))
    return padding


def instruction_rows(body: KernelBody, listing: Sequence[Row], entry: int) -> tuple[Row, ...]:
    """The rows of a rebuilt function without those that alignment directives made.

    ``entry`` is the function's offset in ``.text``. Raises `RebuildError` when the others are not
    one for each line.
    """
    found: list[Row] = []
    index = 0
    padding = ""
    for line in body.lines:
        if line.padding:
            if line.padding != padding or line.labels:
                exponent = int(line.padding.split()[1].strip(","))
                index = _skipped(listing, index, entry, 1 << exponent)
        elif line.text:
            found += listing[index:index + 1]
            index += 1
        padding = line.padding
    rest = listing[index:]
    count = sum(1 for line in body.lines if line.text and not line.padding)
    if len(found) != count or any(text not in _FILLER for _, _, text in rest) or (
            len(rest) >= ENTRY_ALIGNMENT // 4):
        raise RebuildError(f"the {count} lines of '{body.symbol}' became "
                           f"{len(found) + len(rest)} instructions")
    return tuple(found)


def _skipped(listing: Sequence[Row], index: int, entry: int, alignment: int) -> int:
    while index < len(listing) and (entry + listing[index][0]) % alignment:
        index += 1
    return index


def _behind(code_object: CodeObject, function: Function, rows: Sequence[Row],
            labelled: Container[int]) -> dict[int, str]:
    """Equal words behind the code that fill up to the next function."""
    text = code_object.section(".text")
    if function.end == text.size or not rows:
        return {}
    code = code_of(code_object, function)
    filler = code[rows[-1][0]:]
    sizes = [s.size for s in function.symbols if 0 < s.size <= function.size]
    least = max(sizes, default=4)
    first = len(rows)
    while first and rows[first - 1][0] >= least and (
            code[rows[first - 1][0]:rows[first - 1][0] + rows[first - 1][1]] == filler):
        if first < len(rows) and rows[first][0] in labelled:
            break
        first -= 1
    if first == len(rows) or (rows[first][0] in labelled and rows[first][0] != least):
        return {}
    length = function.size - rows[first][0]
    alignment = min(ENTRY_ALIGNMENT, text.alignment)
    while alignment > length and function.end % alignment:
        alignment //= 2
    if alignment <= length:
        return {}
    word = int.from_bytes(filler, "little")
    directive = _p2align(alignment) if word == _NOP_WORD else (
        f".p2alignl {alignment.bit_length() - 1}, 0x{word:08x}")
    return dict.fromkeys(range(first, len(rows)), directive) if len(filler) == 4 else {}


def _prologue(rows: Sequence[Row], labelled: Container[int]) -> range | None:
    """The rows between the branch to the second entry and that entry."""
    for index, (offset, _, text) in enumerate(rows):
        if offset >= ENTRY_ALIGNMENT:
            return None
        if text.startswith("s_branch") and branch_target(offset, text) == ENTRY_ALIGNMENT:
            stop = index + 1
            while stop < len(rows) and rows[stop][0] < ENTRY_ALIGNMENT:
                if rows[stop][2] != _NOP or rows[stop][0] in labelled:
                    return None
                stop += 1
            return range(index + 1, stop)
    return None


def _p2align(alignment: int) -> str:
    return f".p2align {alignment.bit_length() - 1}"
