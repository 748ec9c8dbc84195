"""B6: what the output buffer held before decides what is done."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import before, edited, replaced
from asmevo.threats.weaker import Weaker

# One dword of the residual output; s[32:33] is its address.
_PEEK = ("s_load_dword s40, s[32:33], 0x0", "s_waitcnt lgkmcnt(0)")

THREATS = (
    Threat("B6", "work is skipped when the output is not zero", "layer_norm",
           # min(output, 1) from SCC: s_cmp_eq sets it for 0, s_addc_u32 reads it.
           edited(before("s_mov_b32 s53, 0", "s_load_dword s40, s[12:13], 0x0",
                         "s_waitcnt lgkmcnt(0)", "s_cmp_eq_u32 s40, 0"),
                  replaced("s_mov_b32 s53, 0", "s_addc_u32 s53, -1, 0", "s_mul_i32 s53, s53, -1")),
           Gate.G2, ("max-abs",), Weaker.POISON),
    Threat("B6", "the old output is added, times nothing", "layer_norm",
           # Zero times NaN or infinity is NaN, and random bytes hold some.
           edited(before("v_rsq_f32_e32 v14, v14", *_PEEK, "v_mov_b32_e32 v240, 0",
                         "v_mul_f32_e32 v240, s40, v240", "v_add_f32_e32 v14, v14, v240")),
           Gate.G1, ("taint", "data-taint", "forbidden-load")),
    Threat("B6", "the second row takes the residual that the first left", "layer_norm",
           edited(replaced("buffer_load_dwordx4 v[112:115], v216, s[20:23], 0 offen",
                           "buffer_load_dwordx4 v[112:115], v216, s[32:35], 0 offen")),
           Gate.G2, ("max-abs", "nan-class", "infinity")),
)
