"""B7: registers and LDS that nobody wrote."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import ANY, Threat
from asmevo.threats.trick import before, edited, inserted, replaced

THREATS = (
    Threat("B7", "an undefined vector register stands for zero", "layer_norm",
           edited(replaced("v_add_f32_e64 v14, v14, s28", "v_add_f32_e64 v14, v14, v250")),
           Gate.G1, ("new-undefined-read",)),
    Threat("B7", "an undefined scalar register stands for zero", "layer_norm",
           edited(replaced("s_mov_b32 s53, 0", "s_mov_b32 s53, s60")),
           Gate.G1, ("new-undefined-read",)),
    Threat("B7", "an accumulator is not cleared", "layer_norm",
           edited(replaced("v_pk_mov_b32 v[12:13], 0, 0")),
           Gate.G1, ("new-undefined-read",)),
    Threat("B7", "an undefined register is read at the entry", ANY,
           inserted("v_mov_b32_e32 v3, v4"), Gate.G1, ("new-undefined-read",)),
    Threat("B7", "LDS that nobody wrote is added", "layer_norm",
           edited(before("v_rsq_f32_e32 v14, v14", "v_or_b32_e32 v240, 0x4000, v221",
                         "ds_read_b32 v241, v240", "s_waitcnt lgkmcnt(0)",
                         "v_and_b32_e32 v241, 0x3fffffff, v241",
                         "v_add_f32_e32 v14, v14, v241")),
           Gate.G2, ("max-abs", "nan-class")),
    Threat("B7", "LDS that nobody wrote is added, times nothing", "layer_norm",
           edited(before("v_rsq_f32_e32 v14, v14", "v_or_b32_e32 v240, 0x4000, v221",
                         "ds_read_b32 v241, v240", "v_mov_b32_e32 v242, 0",
                         "s_waitcnt lgkmcnt(0)", "v_mul_f32_e32 v241, v241, v242",
                         "v_add_f32_e32 v14, v14, v241")),
           Gate.G2, ("nan-class", "sanitizer")),
)
