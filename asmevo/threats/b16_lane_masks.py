"""B16: mistakes of the lane mask that full waves hide."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import edited, removed, replaced
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
    Threat("B16", "all lanes are switched on for the end", "layer_norm",
           edited(replaced("s_endpgm", "s_mov_b64 exec, -1", "s_endpgm")),
           Gate.G1, ("special-register",)),
)
