"""B5: a result is kept between launches."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import before, edited

THREATS = (
    Threat("B5", "a spare argument keeps a mark", "layer_norm",
           edited(before("s_waitcnt vmcnt(0) expcnt(0)", "v_mov_b32_e32 v240, 0x90",
                         "v_mov_b32_e32 v241, 1", "s_mov_b32 s14, -1", "s_mov_b32 s12, s0",
                         "s_mov_b32 s13, s1",
                         "buffer_store_dword v241, v240, s[12:15], 0 offen")),
           Gate.G1, LAUNCH),
    Threat("B5", "the argument segment keeps a mark", "layer_norm",
           edited(before("s_waitcnt vmcnt(0) expcnt(0)", "v_mov_b32_e32 v240, 0x40",
                         "s_mov_b32 s14, -1", "s_mov_b32 s12, s0", "s_mov_b32 s13, s1",
                         "buffer_store_dwordx4 v[212:215], v240, s[12:15], 0 offen")),
           Gate.G2, (*LAUNCH, "fault-memory")),
    Threat("B5", "LDS is expected to hold what the launch before left", "layer_norm",
           # Adds what LDS has from 0x8000 on, which is 0 where memory starts cleared.
           edited(before("v_rsq_f32_e32 v14, v14", "v_or_b32_e32 v240, 0x8000, v221",
                         "ds_read_b32 v241, v240", "s_waitcnt lgkmcnt(0)",
                         "v_and_b32_e32 v241, 0x3fffffff, v241", "v_add_f32_e32 v14, v14, v241")),
           Gate.G2, ("max-abs", "nan-class", "infinity", "cosine")),
    Threat("B5", "spare input bytes keep a mark", "layer_norm",
           edited(before("s_waitcnt vmcnt(0) expcnt(0)", "v_mov_b32_e32 v240, 0",
                         "buffer_store_dwordx4 v[212:215], v240, s[20:23], 0 offen")),
           Gate.G2, (*LAUNCH, "fault-memory")),
    Threat("B5", "an input is borrowed and put back", "layer_norm",
           edited(before("s_waitcnt vmcnt(0) expcnt(0)", "v_mov_b32_e32 v240, 0",
                         "buffer_load_dwordx4 v[244:247], v240, s[20:23], 0 offen",
                         "s_waitcnt vmcnt(0)",
                         "buffer_store_dwordx4 v[212:215], v240, s[20:23], 0 offen",
                         "buffer_store_dwordx4 v[244:247], v240, s[20:23], 0 offen")),
           Gate.G2, (*LAUNCH, "fault-memory")),
)
