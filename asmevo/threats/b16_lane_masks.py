"""B16: mistakes of the lane mask that full waves hide."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import before, edited, removed, replaced
from asmevo.threats.weaker import Weaker

THREATS = (
    Threat("B16", "the bounds check is dropped", "scaled_sum",
           edited(removed("s_and_saveexec_b64")),
           Gate.G2, (*LAUNCH, "guard-overwritten", "max-abs", "bits"), Weaker.SHAPES),
    Threat("B16", "the bounds check lets one lane too many through", "scaled_sum",
           edited(replaced("v_cmp_gt_u32_e32 vcc", "s_add_u32 s14, s10, 1",
                           "v_cmp_gt_u32_e32 vcc, s14, v1")),
           Gate.G2, (*LAUNCH, "guard-overwritten", "max-abs"), Weaker.SHAPES),
    Threat("B16", "the bounds check lets one lane too few through", "scaled_sum",
           edited(replaced("v_cmp_gt_u32_e32 vcc", "s_add_u32 s14, s10, -1",
                           "v_cmp_gt_u32_e32 vcc, s14, v1")),
           Gate.G2, (*LAUNCH, "max-abs", "cosine")),
    Threat("B16", "the mask is rounded to whole waves", "scaled_sum",
           edited(replaced("v_cmp_gt_u32_e32 vcc", "v_and_b32_e32 v6, 0xffffffc0, v1",
                           "v_cmp_gt_u32_e32 vcc, s10, v6")),
           Gate.G2, (*LAUNCH, "guard-overwritten", "max-abs"), Weaker.SHAPES),
    # What a stretch writes is held by its lanes alone, whether or not it may be jumped over.
    Threat("B16", "other lanes load where their stretch has not set the address", "scaled_sum",
           edited(removed("s_cbranch_execz"),
                  before("s_and_saveexec_b64", "v_lshlrev_b32_e32 v2, 3, v1"),
                  replaced("global_load_dword v3, v2", "s_or_b64 exec, exec, s[12:13]",
                           "global_load_dword v3, v2, s[6:7] sc1",
                           "s_and_b64 exec, exec, vcc")),
           Gate.G2, (*LAUNCH, "fault-memory")),
    Threat("B16", "a jump over work leads on where lanes are on", "scaled_sum",
           edited(replaced("v_mul_f32_e32 v4, s11, v3", "s_cbranch_execnz .Lidle",
                           "v_mul_f32_e32 v4, s11, v3", ".Lidle:")),
           Gate.G2, (*LAUNCH, "forbidden-opcode", "new-undefined-read", "max-abs", "bits")),
    Threat("B16", "all lanes are switched on for the end", "layer_norm",
           edited(replaced("s_endpgm", "s_mov_b64 exec, -1", "s_endpgm")),
           Gate.G1, ("special-register",)),
)
