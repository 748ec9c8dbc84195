"""Assembly text to a code object, the way the original was linked."""

from __future__ import annotations

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.encoding import applied, marked
from asmevo.codeobject.lld17 import without_relro_padding
from asmevo.codeobject.recover import comments
from asmevo.codeobject.toolchain import Toolchain

_PADDING = ".relro_padding"


def build(original: CodeObject, assembly: Assembly, toolchain: Toolchain) -> bytes:
    """Assemble and link with the original's linker comment and section layout.

    Raises `AssemblerError` when the text is rejected and `ToolchainError` when a tool fails.
    """
    return build_text(original, assembly.text(), toolchain)


def build_text(original: CodeObject, text: str, toolchain: Toolchain) -> bytes:
    """`build` for a whole document, such as a recovered one that was edited in an editor."""
    text, masks = marked(text)
    assembled = toolchain.assemble(text, original.target)
    relocatable = applied(assembled, masks, original.target, text)
    data = toolchain.link(relocatable, version_comment=comments(original).linker)
    if all(section.name != _PADDING for section in original.sections):
        data = without_relro_padding(data)
    return data
