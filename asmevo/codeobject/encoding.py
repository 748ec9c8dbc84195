"""Bits of an instruction that LLVM neither prints nor writes, as a comment behind its text.

Other compilers set bits that no operand stands for: AITER's gfx950 objects have bits 13 and 14 set
in the first word of ``v_mfma_scale_f32_16x16x128_f8f6f4``. LLVM decodes such an instruction and
encodes it without them. Kept as data it could not be edited, so the text gets a comment::

    v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], ... // enc: |0x6000

``|`` names bits to set and ``&~`` bits to clear, in the instruction's bytes as a little-endian
number. An assembler that does not know the comment makes an object that is the same to LLVM; where
an edit gave such a bit a meaning, the comment is refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asmevo.codeobject.disassembler import shared
from asmevo.codeobject.elf import read_tables
from asmevo.codeobject.errors import AssemblerError, Diagnostic, ToolchainError
from asmevo.codeobject.target import Target

_COMMENT = re.compile(
    r" // enc:(?: \|0x([0-9a-f]{1,32}))?(?: &~0x([0-9a-f]{1,32}))?$", re.MULTILINE)
_SECTION = ".asmevo.encoding"
_LABEL = ".L_asmevo_encoding_"
_MARK = re.compile(rf"{re.escape(_LABEL)}[0-9]+: ")
# Elf64_Rela: offset, symbol and type, addend. The symbol is that of .text.
_RELOCATION = struct.Struct("<QQq")


@dataclass(frozen=True, slots=True)
class Encoding:
    """Bits to set and to clear in an instruction, as little-endian numbers of its size."""

    set: int = 0
    clear: int = 0

    @classmethod
    def between(cls, assembled: bytes, original: bytes) -> Encoding:
        """What turns the assembler's bytes into the original's."""
        left, right = (int.from_bytes(b, "little") for b in (assembled, original))
        return cls(right & ~left, left & ~right)

    def comment(self) -> str:
        """The comment with its leading space; empty when there is nothing to change."""
        parts = [f" |0x{self.set:x}"] if self.set else []
        parts += [f" &~0x{self.clear:x}"] if self.clear else []
        return " // enc:" + "".join(parts) if parts else ""


UNCHANGED = Encoding()


def marked(text: str) -> tuple[str, tuple[Encoding, ...]]:
    """Text in which every commented instruction has a label, and its masks in order of the text.

    Line numbers stay what they are. Relocations of a section that the linker leaves out
    (SHF_EXCLUDE) say where the labels are.
    """
    masks: list[Encoding] = []
    out: list[str] = []
    position = 0
    for match in _COMMENT.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        out += [text[position:start], f"{_LABEL}{len(masks)}: ", text[start:match.start()]]
        position = match.end()
        masks.append(Encoding(int(match[1] or "0", 16), int(match[2] or "0", 16)))
    if not masks:
        return text, ()
    out += [text[position:], f'\n\t.section {_SECTION},"e",@progbits\n']
    out += [f"\t.quad {_LABEL}{i}\n" for i in range(len(masks))]
    return "".join(out), tuple(masks)


def unmarked(error: AssemblerError, marks: str) -> AssemblerError:
    """The assembler's error about what `marked` made, in the columns of the unmarked text."""
    lines = marks.split("\n")

    def moved(diagnostic: Diagnostic) -> Diagnostic:
        if not 0 < diagnostic.line <= len(lines):
            return diagnostic
        mark = _MARK.match(lines[diagnostic.line - 1])
        return replace(diagnostic, column=max(1, diagnostic.column - mark.end())) if (
            mark and diagnostic.column) else diagnostic

    return AssemblerError(tuple(moved(d) for d in error.diagnostics),
                          _MARK.sub("", error.source.lstrip()))


def applied(relocatable: bytes, masks: Sequence[Encoding], target: Target,
            text: str = "") -> bytes:
    """The assembler's output with the masks of its text applied to its code.

    ``text`` is what `marked` made. Raises `AssemblerError` with the line of a mask that makes
    another instruction of what the assembler encoded.
    """
    if not masks:
        return relocatable
    sections, _ = read_tables(relocatable)
    extents = {s.name: (s.offset, s.size) for s in sections}
    if not {".text", f".rela{_SECTION}"} <= extents.keys():
        raise ToolchainError("the assembler's output lacks the positions of commented instructions")
    start, size = extents[".text"]
    table, length = extents[f".rela{_SECTION}"]
    places = [addend for _, _, addend in _RELOCATION.iter_unpack(relocatable[table:table + length])]
    code = bytearray(relocatable[start:start + size])
    for place, mask in zip(places, masks, strict=True):
        count = (max(mask.set, mask.clear).bit_length() + 7) // 8
        if not 0 <= place <= size - count:
            raise ToolchainError("a commented instruction lies outside the code")
        value = int.from_bytes(code[place:place + count], "little") & ~mask.clear | mask.set
        code[place:place + count] = value.to_bytes(count, "little")
    _check_meaning(relocatable[start:start + size], bytes(code), places, target, text)
    return relocatable[:start] + bytes(code) + relocatable[start + size:]


def _check_meaning(before: bytes, after: bytes, places: Sequence[int], target: Target,
                   text: str) -> None:
    rows = [shared().rows(target.isa, code) for code in (before, after)]
    changed = next((left for left, right in zip(*rows, strict=False) if left != right), None)
    if changed is None:
        return
    # A mask may reach beyond its instruction, so the first row that differs need not have one.
    index = max((i for i, place in enumerate(places) if place <= changed[0]),
                key=lambda i: places[i], default=0)
    label = f"{_LABEL}{index}: "
    position = text.find(label)
    number = text.count("\n", 0, position) + 1 if position >= 0 else 0
    source = text[position + len(label):].partition("\n")[0] if number else ""
    raise AssemblerError((Diagnostic(number, 0, "error", (
        "the bits of the '// enc:' comment make another instruction of this one")),), source)
