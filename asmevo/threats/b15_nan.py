"""B15: NaN as a wildcard."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import edited, replaced
from asmevo.threats.weaker import Weaker

THREATS = (
    Threat("B15", "every output is NaN", "layer_norm",
           edited(replaced("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v14, 0x7fc00000")),
           Gate.G2, ("nan-class",), Weaker.NAN),
    Threat("B15", "NaN comes out as infinity", "layer_norm",
           edited(replaced("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v14, 0x7f800000")),
           Gate.G2, ("nan-class", "infinity")),
    Threat("B15", "weights are NaN", "topksoftmax",
           edited(replaced("v_rcp_f32_e32 v15, v16", "v_mov_b32_e32 v15, -1")),
           Gate.G2, ("nan-class", "bits")),
)
