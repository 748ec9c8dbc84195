"""Kernels and target of a code object, without taking all of it apart."""

from __future__ import annotations

from asmevo.bundle.elf_sections import find_sections
from asmevo.bundle.errors import BundleError
from asmevo.codeobject.elf import read_notes, read_target
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.metadata import NOTE_LIMIT, decode_metadata

_SHT_NOTE = 7
_NT_AMDGPU_METADATA = 32


def kernel_symbols(data: memoryview) -> tuple[str, ...]:
    """The kernels that the metadata note lists; none when there is no such note.

    Unlike `CodeObject.parse` this takes processors that AsmEvo cannot recover. Raises
    `BundleError` on a damaged object.
    """
    sections = find_sections(data, types=(_SHT_NOTE,))
    if sum(section.size for section in sections) > NOTE_LIMIT:
        raise BundleError(f"the notes have more than {NOTE_LIMIT} bytes")
    for section in sections:
        try:
            for owner, kind, note in read_notes(
                    bytes(data[section.offset:section.offset + section.size])):
                if owner == b"AMDGPU" and kind == _NT_AMDGPU_METADATA:
                    return _names(decode_metadata(note))
        except CodeObjectError as error:
            raise BundleError(str(error)) from error
    return ()


def _names(metadata: dict[str, object]) -> tuple[str, ...]:
    kernels = metadata.get("amdhsa.kernels", [])
    names = []
    for kernel in kernels if isinstance(kernels, list) else [None]:
        symbol = kernel.get(".symbol") if isinstance(kernel, dict) else None
        if not isinstance(symbol, str):
            raise BundleError("the metadata describes a kernel without a symbol")
        names.append(symbol.removesuffix(".kd"))
    return tuple(names)


def elf_target(data: bytes) -> str:
    """The target ID that an object's ELF header states; empty for processors unknown to AsmEvo."""
    try:
        return read_target(data)[0].processor
    except CodeObjectError:
        return ""
