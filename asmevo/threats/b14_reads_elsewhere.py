"""B14: reads outside the buffers that happen to work."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import before, edited, replaced
from asmevo.threats.weaker import Weaker

THREATS = (
    Threat("B14", "a load from far behind a buffer", "layer_norm",
           edited(replaced("s_mov_b32 s49, 0x1000", "s_mov_b32 s49, 0x1000000")),
           Gate.G2, (*LAUNCH, "fault-memory")),
    Threat("B14", "a prefetch just behind a buffer, for nothing", "layer_norm",
           # s[20:23] are the weights, 16 KiB; what follows is mapped on most days.
           edited(before("s_waitcnt vmcnt(0) expcnt(0)", "v_mov_b32_e32 v240, 0x4000",
                         "buffer_load_dwordx4 v[244:247], v240, s[20:23], 0 offen")),
           Gate.G2, (*LAUNCH, "sanitizer"), Weaker.STATIC),
    Threat("B14", "what lies behind a buffer is added, times nothing", "layer_norm",
           edited(before("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v240, 0x4000",
                         "buffer_load_dwordx4 v[244:247], v240, s[20:23], 0 offen",
                         "s_waitcnt vmcnt(0)", "v_and_b32_e32 v244, 0, v244",
                         "v_add_f32_e32 v14, v14, v244")),
           Gate.G2, (*LAUNCH, "sanitizer"), Weaker.STATIC),
)
