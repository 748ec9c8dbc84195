"""Assembly text to a code object, the way the original was linked."""

from __future__ import annotations

import re

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.elf import read_tables
from asmevo.codeobject.encoding import applied, marked, unmarked
from asmevo.codeobject.errors import AssemblerError, Diagnostic
from asmevo.codeobject.lld17 import without_relro_padding
from asmevo.codeobject.recover import comments
from asmevo.codeobject.toolchain import Toolchain

_PADDING = ".relro_padding"
_NAME = re.compile(r"(?<![A-Za-z0-9_.$@])[A-Za-z_.$][A-Za-z0-9_.$]*")


def build(original: CodeObject, assembly: Assembly, toolchain: Toolchain) -> bytes:
    """Assemble and link with the original's linker comment and section layout.

    Raises `AssemblerError` when the text is rejected and `ToolchainError` when a tool fails.
    """
    return build_text(original, assembly.text(), toolchain)


def build_text(original: CodeObject, text: str, toolchain: Toolchain) -> bytes:
    """`build` for a whole document, such as a recovered one that was edited in an editor."""
    text, masks = marked(text)
    try:
        assembled = toolchain.assemble(text, original.target)
    except AssemblerError as error:
        raise unmarked(error, text) from None
    _check_defined(assembled, original, text)
    relocatable = applied(assembled, masks, original.target, text)
    data = toolchain.link(relocatable, version_comment=comments(original).linker)
    if all(section.name != _PADDING for section in original.sections):
        data = without_relro_padding(data)
    return data


def _check_defined(assembled: bytes, original: CodeObject, text: str) -> None:
    """Raise `AssemblerError` with its line for a name that nothing defines.

    The assembler takes it for another object's symbol, and the linker, if it objects at all, does
    not know the line.
    """
    known = {symbol.name for symbol in original.symbols}
    missing = {s.name for s in read_tables(assembled)[1] if s.section == "UND" and s.name} - known
    if not missing:
        return
    for number, line in enumerate(text.split("\n"), 1):
        for word in _NAME.findall(line.partition("//")[0]):
            if word in missing:
                raise AssemblerError((Diagnostic(number, 0, "error", (
                    f"'{word}' is no register and nothing defines it")),), line)
    raise AssemblerError((Diagnostic(0, 0, "error", (
        f"nothing defines the name '{min(missing)}'")),))
