"""B19: the descriptor understates what the code takes, or the interface changes."""

from __future__ import annotations

import struct

from asmevo.gates.verdict import Gate
from asmevo.threats.subject import Subject
from asmevo.threats.threat import ANY, Threat
from asmevo.threats.trick import Bytes, Derived, before, edited

# Words of a kernel descriptor (LLVM, "Kernel Descriptor").
_PRIVATE, _KERNARG, _RSRC3, _RSRC1, _RSRC2, _PROPERTIES, _PRELOAD = 4, 8, 44, 48, 52, 56, 58


def _changed(offset: int, mask: int, by: int) -> Bytes:
    """A bit field of a descriptor's word, one more or less; ``mask`` has the field's bits."""
    def change(data: bytearray, subject: Subject) -> None:
        at = subject.descriptor_offset + offset
        word, = struct.unpack_from("<I", data, at)
        unit = mask & -mask
        struct.pack_into("<I", data, at, word & ~mask | (word + by * unit) & mask)

    return Bytes(change)


THREATS = (
    Threat("B19", "fewer vector registers for more waves", ANY, _changed(_RSRC1, 0x3F, -1),
           Gate.G0, ("round-trip", "rebuild-refused")),
    Threat("B19", "fewer scalar registers", ANY, _changed(_RSRC1, 0x3C0, -2),
           Gate.G0, ("round-trip", "rebuild-refused")),
    Threat("B19", "another kernarg size", ANY, _changed(_KERNARG, 0xFFFF, 8),
           Gate.G1, ("interface",)),
    Threat("B19", "kernarg preload", ANY, _changed(_PROPERTIES, 0x7F0000, 2),
           Gate.G1, ("interface", "unreadable")),
    Threat("B19", "scratch for results of its own", ANY, _changed(_PRIVATE, 0xFFFF, 64),
           Gate.G1, ("interface",)),
    Threat("B19", "another workgroup id", ANY, _changed(_RSRC2, 0x80, 1),
           Gate.G1, ("interface", "unreadable")),
    Threat("B19", "the text understates vector registers", "topksoftmax",
           Derived(lambda subject: subject.with_directive("amdhsa_next_free_vgpr", "8")),
           Gate.G1, ("interface",)),
    Threat("B19", "a scalar register beyond the allocation", "layer_norm",
           edited(before("s_endpgm", "s_mov_b32 s101, 0")),
           Gate.G4, ("below-floor", "not-better")),
)
