"""The code that ``.eh_frame`` points to; the linker drops an entry whose pointer is not symbolic.

Source: Linux Standard Base Core Specification 5.0, section "The .eh_frame section".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import CodeObjectError

SECTION = ".eh_frame"

# DW_EH_PE_pcrel with sdata4 and with absptr, the encodings that LLVM uses; by size in bytes.
_ENCODINGS = {0x1B: 4, 0x10: 8}


@dataclass(frozen=True, slots=True)
class FramePointer:
    """The start of the code that one entry describes: ``size`` bytes at ``address``."""

    address: int
    size: int
    target: int


def frame_pointers(code_object: CodeObject) -> tuple[FramePointer, ...]:
    """All pointers to code; raises `CodeObjectError` when the section is not as LLVM makes it."""
    section = next((s for s in code_object.sections if s.name == SECTION), None)
    if section is None or not section.address:
        return ()
    data = code_object.section_data(section)
    encodings: dict[int, int] = {}
    found: list[FramePointer] = []
    position = 0
    try:
        while position < len(data):
            length = struct.unpack_from("<I", data, position)[0]
            if length == 0:  # a terminator, or padding
                position += 4
                continue
            identity = struct.unpack_from("<I", data, position + 4)[0]
            end = position + 4 + length
            if length < 4 or end > len(data):
                raise CodeObjectError(f"an entry of {SECTION} is larger than the section")
            if identity == 0:
                encodings[position] = _encoding(data[position + 8:end])
            else:
                size = _ENCODINGS[encodings[position + 4 - identity]]
                at = position + 8
                value = int.from_bytes(data[at:at + size], "little", signed=True)
                address = section.address + at
                found.append(FramePointer(address, size, address + value))
            position = end
    except (struct.error, KeyError, IndexError):
        raise CodeObjectError(f"recovery does not handle the contents of {SECTION}") from None
    return tuple(found)


def _encoding(cie: bytes) -> int:
    """The pointer encoding of a common information entry (from its version on)."""
    augmentation, _, rest = cie[1:].partition(b"\0")
    if cie[0] != 1 or augmentation != b"zR":
        raise CodeObjectError(f"recovery does not handle the augmentation {augmentation[:8]!r} of "
                              f"{SECTION}")
    position = 0
    for _ in range(2):  # code and data alignment factors, LEB128
        while rest[position] & 0x80:
            position += 1
        position += 1
    return rest[position + 2]  # behind the return register and the augmentation's length
