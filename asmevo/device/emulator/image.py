"""A code object in memory: what a kernel finds at the addresses that it computes from its own.

The loader maps the object's allocated sections at one base and fills in its relocations (LLVM "User
Guide for AMDGPU Backend", "Code Object"). Constants, tables and variables of a module live there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.elf import Section
from asmevo.codeobject.relocation import relocations
from asmevo.device.device import UnsupportedError
from asmevo.isa.program import Program

# Where objects are mapped: above what a launch adds to memory, below the buffers of a declaration.
IMAGE_BASE = 0x0000_2000_0000_0000
_SHF_WRITE = 1
_SHF_ALLOC = 2
_MAX_BYTES = 1 << 28
_MAX_ADDRESS = 1 << 40  # of a section within its object


@dataclass(frozen=True, slots=True)
class ImageSection:
    """One mapped section: its device address and its bytes before a launch."""

    name: str
    address: int
    data: bytes
    writable: bool

    def mapped(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(bytearray(self.data), dtype=np.uint8)


def code_address(code_object: CodeObject, kernel: Kernel) -> int:
    """Device address of a kernel's first instruction. Raises `UnsupportedError` for absurd ones."""
    text = code_object.section(".text")
    _check_address(text)
    return IMAGE_BASE + text.address + kernel.entry


def _check_address(section: Section) -> None:
    if section.address + section.size > _MAX_ADDRESS:
        raise UnsupportedError(f"section '{section.name}' lies at {section.address:#x}, beyond "
                               f"what the emulator maps of a code object")


def other_kernels(code_object: CodeObject, kernel: Kernel, program: Program) -> frozenset[int]:
    """Instructions of a program that are other kernels' code, which this one cannot call.

    They may need registers that this kernel does not have.
    """
    ranges = [(k.entry - kernel.entry, k.entry - kernel.entry + k.size)
              for k in code_object.kernels if k.symbol != kernel.symbol]
    return frozenset(index for index, offset in enumerate(program.offsets[:-1])
                     if any(start <= offset < stop for start, stop in ranges))


def image(code_object: CodeObject) -> tuple[ImageSection, ...]:
    """The sections of a loaded object, relocated.

    Raises `UnsupportedError` for an object that is too large or whose relocations leave it, and
    `CodeObjectError` for relocations of unknown kinds.
    """
    sections = [s for s in code_object.sections if s.flags & _SHF_ALLOC and s.address and s.size]
    if sum(s.size for s in sections) > _MAX_BYTES:
        raise UnsupportedError(f"the code object takes more than {_MAX_BYTES} bytes of memory")
    for section in sections:
        _check_address(section)
    contents = [bytearray(code_object.section_data(s).ljust(s.size, b"\0")) for s in sections]
    values = {s.name: s.value for s in code_object.symbols if s.section != "UND"}
    for relocation in relocations(code_object):
        value = 0 if relocation.symbol is None else values.get(relocation.symbol, -1)
        holder = next((i for i, s in enumerate(sections) if s.address <= relocation.address and
                       relocation.address + 8 <= s.address + s.size), None)
        if holder is None or value < 0:
            raise UnsupportedError(f"the code object has a relocation at {relocation.address:#x} "
                                   f"that the emulator cannot resolve")
        start = relocation.address - sections[holder].address
        address = (IMAGE_BASE + value + relocation.addend) % (1 << 64)
        contents[holder][start:start + 8] = address.to_bytes(8, "little")
    return tuple(ImageSection(f"code object {s.name}", IMAGE_BASE + s.address, bytes(data),
                              bool(s.flags & _SHF_WRITE))
                 for s, data in zip(sections, contents, strict=True))
