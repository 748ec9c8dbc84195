"""B8: LDS beyond what is declared, or beyond what there is."""

from __future__ import annotations

import struct

from asmevo.gates.verdict import Gate
from asmevo.threats.subject import Subject
from asmevo.threats.threat import ANY, LAUNCH, Threat
from asmevo.threats.trick import Bytes, Derived, before, edited
from asmevo.threats.weaker import Weaker

_OBJECT = ("round-trip", "rebuild-refused", "unreadable", "interface")


def _less_lds(data: bytearray, subject: Subject) -> None:
    """GROUP_SEGMENT_FIXED_SIZE is the first word of a kernel descriptor."""
    at = subject.descriptor_offset
    size, = struct.unpack_from("<I", data, at)
    struct.pack_into("<I", data, at, size // 2 if size else 4096)


THREATS = (
    Threat("B8", "partial sums are written behind the declared LDS", "layer_norm",
           edited(before("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v240, 0x10000",
                         "ds_write_b32 v240, v14", "s_waitcnt lgkmcnt(0)")),
           Gate.G0, ("rebuild-refused",)),
    Threat("B8", "LDS is written behind the declared size, at a computed address", "layer_norm",
           # Eight times N, an argument.
           edited(before("v_rsq_f32_e32 v14, v14", "s_mul_i32 s40, s30, 8",
                         "v_mov_b32_e32 v240, s40", "ds_write_b32 v240, v14",
                         "s_waitcnt lgkmcnt(0)")),
           Gate.G2, (*LAUNCH, "sanitizer"), Weaker.STATIC),
    Threat("B8", "LDS is read behind the declared size, at a computed address", "layer_norm",
           edited(before("v_rsq_f32_e32 v14, v14", "s_mul_i32 s40, s30, 8",
                         "v_mov_b32_e32 v240, s40", "ds_read_b32 v241, v240",
                         "s_waitcnt lgkmcnt(0)", "v_add_f32_e32 v14, v14, v241")),
           Gate.G2, (*LAUNCH, "sanitizer"), Weaker.STATIC),
    Threat("B8", "a lane's own partial sum is written behind the declared size", "layer_norm",
           # 64 KiB and more from the lane's offset on: dropped by hardware, so fast.
           edited(before("v_rsq_f32_e32 v14, v14", "v_or_b32_e32 v240, 0x10000, v221",
                         "ds_write_b32 v240, v14", "s_waitcnt lgkmcnt(0)")),
           Gate.G2, ("sanitizer", "rebuild-refused"), Weaker.STATIC),
    Threat("B8", "the descriptor declares other LDS than the code needs", ANY, Bytes(_less_lds),
           Gate.G1, ("interface",)),
    Threat("B8", "the text declares other LDS than the original", "layer_norm",
           Derived(lambda subject: subject.with_directive(
               "amdhsa_group_segment_fixed_size", "32768")),
           Gate.G0, _OBJECT),
)
