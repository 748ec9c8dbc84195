"""B13: writes outside the outputs, even into the expected answer."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import Edited, before, edited
from asmevo.threats.weaker import Weaker

_END = "s_waitcnt vmcnt(0) expcnt(0)"
# At the end s[12:15] describe the output from its second row on; of two rows, one is left.
_ROW = "0x4000"


def _behind_the_output(pattern: str) -> Edited:
    return edited(before(
        _END, f"v_mov_b32_e32 v240, {_ROW}",
        *(f"v_mov_b32_e32 v{244 + i}, {pattern}" for i in range(4)),
        "buffer_store_dwordx4 v[244:247], v240, s[12:15], 0 offen"))


THREATS = (
    *(Threat("B13", f"16 bytes behind the output become {pattern}", "layer_norm",
             _behind_the_output(pattern), Gate.G2, (*LAUNCH, "guard-overwritten"),
             Weaker.GUARDS) for pattern in ("0xc5c5c5c5", "0", "-1")),
    Threat("B13", "bytes in front of the output are written", "layer_norm",
           edited(before(_END, "s_sub_u32 s12, s12, 0x5000", "v_mov_b32_e32 v240, 0",
                         "buffer_store_dwordx4 v[212:215], v240, s[12:15], 0 offen")),
           Gate.G1, LAUNCH),
    Threat("B13", "bytes in front of the output are written with known operations", "layer_norm",
           edited(before(_END, "s_add_u32 s12, s12, 0xffffb000", "s_addc_u32 s13, -1, s13",
                         "v_mov_b32_e32 v240, 0",
                         "buffer_store_dwordx4 v[212:215], v240, s[12:15], 0 offen")),
           Gate.G2, (*LAUNCH, "guard-overwritten", "fault-memory"), Weaker.GUARDS),
    Threat("B13", "an input becomes what makes the answer right", "layer_norm",
           edited(before(_END, "v_mov_b32_e32 v240, 0",
                         "buffer_store_dwordx4 v[212:215], v240, s[24:27], 0 offen")),
           Gate.G2, (*LAUNCH, "fault-memory", "input-modified")),
    Threat("B13", "memory that nobody gave is searched for the answer", "layer_norm",
           edited(before(_END, "s_add_u32 s12, s12, 0x10000000", "v_mov_b32_e32 v240, 0",
                         "buffer_load_dwordx4 v[244:247], v240, s[12:15], 0 offen")),
           Gate.G2, (*LAUNCH, "fault-memory")),
)
