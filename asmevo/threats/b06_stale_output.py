"""B6: what the output buffer held before decides what is done."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import before, edited, replaced
from asmevo.threats.weaker import Weaker

_BEFORE_DESCRIPTORS = "s_mov_b32 s18, 0x80000000"  # until here addresses are plain

THREATS = (
    Threat("B6", "work is skipped when the output is not zero", "layer_norm",
           # s41 is 1 for an output of 0, else 0 (SCC through s_addc_u32). Buffers without a size
           # neither load nor store.
           edited(before(_BEFORE_DESCRIPTORS, "s_load_dword s40, s[12:13], 0x0",
                         "s_waitcnt lgkmcnt(0)", "s_cmp_eq_u32 s40, 0", "s_addc_u32 s41, 0, 0"),
                  *(replaced(f"s_mov_b32 s{size}, 0x80000000", f"s_lshl_b32 s{size}, s41, 31")
                    for size in (14, 18, 22, 26, 34, 38))),
           Gate.G2, (*LAUNCH, "max-abs", "nan-class"), Weaker.POISON),
    Threat("B6", "the old output is added, times nothing", "layer_norm",
           # Zero times NaN is NaN: one of the fillings must be NaN throughout.
           edited(before(_BEFORE_DESCRIPTORS, "s_load_dword s40, s[32:33], 0x0",
                         "s_waitcnt lgkmcnt(0)"),
                  before("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v240, 0",
                         "v_mul_f32_e32 v240, s40, v240", "v_add_f32_e32 v14, v14, v240")),
           Gate.G2, (*LAUNCH, "nan-class")),
    Threat("B6", "the old output is added through its own descriptor, times nothing", "layer_norm",
           edited(before("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v240, 0",
                         "buffer_load_dwordx4 v[244:247], v240, s[32:35], 0 offen",
                         "s_waitcnt vmcnt(0)", "v_mul_f32_e32 v244, v240, v244",
                         "v_add_f32_e32 v14, v14, v244")),
           Gate.G2, (*LAUNCH, "nan-class", "sanitizer")),
    Threat("B6", "the old output is added", "layer_norm",
           edited(before("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v240, 0",
                         "buffer_load_dwordx4 v[244:247], v240, s[32:35], 0 offen",
                         "s_waitcnt vmcnt(0)", "v_and_b32_e32 v244, 0x3fffffff, v244",
                         "v_add_f32_e32 v14, v14, v244")),
           Gate.G2, (*LAUNCH, "max-abs", "nan-class", "infinity")),
)
