"""B19: the descriptor understates what the code takes, or the interface changes."""

from __future__ import annotations

import struct

from asmevo.codeobject.descriptor import EXTRA_SGPRS, SGPR_GRANULE, VGPR_GRANULE
from asmevo.gates.verdict import Gate
from asmevo.isa.resources import register_use
from asmevo.threats.subject import Subject
from asmevo.threats.threat import ANY, Threat
from asmevo.threats.trick import Bytes, Derived, EditMismatch, before, edited

# Words of a kernel descriptor (LLVM, "Kernel Descriptor").
_PRIVATE, _KERNARG, _RSRC1, _RSRC2, _PROPERTIES = 4, 8, 48, 52, 56


def _changed(offset: int, mask: int, by: int) -> Bytes:
    """A bit field of a descriptor's word, one more or less; ``mask`` has the field's bits."""
    def change(data: bytearray, subject: Subject) -> None:
        at = subject.descriptor_offset + offset
        word, = struct.unpack_from("<I", data, at)
        unit = mask & -mask
        struct.pack_into("<I", data, at, word & ~mask | (word + by * unit) & mask)

    return Bytes(change)


def _understated_vgprs(data: bytearray, subject: Subject) -> None:
    """One granule less than the code takes, AGPRs included."""
    vgprs, agprs, _ = register_use(subject.baseline.program)
    offset = subject.code_object.kernel(subject.symbol).descriptor.accum_offset
    _granules(data, subject, 0x3F, max(vgprs, offset + agprs if agprs else 0), VGPR_GRANULE)


def _understated_sgprs(data: bytearray, subject: Subject) -> None:
    # The extra ones are allocated with the others.
    sgprs = register_use(subject.baseline.program)[2] + EXTRA_SGPRS
    _granules(data, subject, 0x3C0, sgprs, SGPR_GRANULE, unit=2)


def _granules(data: bytearray, subject: Subject, mask: int, used: int, granule: int,
              unit: int = 1) -> None:
    field = (-(-used // granule) - 1) // unit * unit - unit
    if field < 0:
        raise EditMismatch(f"kernel '{subject.name}' takes the least that can be allocated")
    at = subject.descriptor_offset + _RSRC1
    word, = struct.unpack_from("<I", data, at)
    struct.pack_into("<I", data, at, word & ~mask | field * (mask & -mask))


THREATS = (
    Threat("B19", "fewer vector registers for more waves", ANY, Bytes(_understated_vgprs),
           Gate.G1, ("rebuild-refused", "resources")),
    Threat("B19", "fewer scalar registers", ANY, Bytes(_understated_sgprs),
           Gate.G1, ("resources", "unreadable")),
    Threat("B19", "another kernarg size", ANY, _changed(_KERNARG, 0xFFFF, 8),
           Gate.G1, ("interface",)),
    Threat("B19", "kernarg preload", ANY, _changed(_PROPERTIES, 0x7F0000, 2),
           Gate.G0, ("rebuild-refused",)),
    Threat("B19", "scratch for results of its own", ANY, _changed(_PRIVATE, 0xFFFF, 64),
           Gate.G1, ("interface",)),
    Threat("B19", "another workgroup id", ANY, _changed(_RSRC2, 0x80, 1),
           Gate.G1, ("interface", "unreadable")),
    Threat("B19", "the text understates vector registers", "topksoftmax",
           Derived(lambda subject: subject.with_directive("amdhsa_next_free_vgpr", "8")),
           Gate.G0, ("rebuild-refused",)),
    Threat("B19", "a scalar register beyond the allocation", "layer_norm",
           edited(before("s_endpgm", "s_mov_b32 s101, 0")),
           Gate.G4, ("below-floor", "not-better")),
)
