"""B11: precision is cut."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import edited, removed, replaced
from asmevo.threats.weaker import Weaker

_PARTS = ("v[64:65]", "v[66:67]", "v[68:69]", "v[70:71]", "v[72:73]", "v[74:75]", "v[76:77]",
          "v[78:79]")

THREATS = (
    Threat("B11", "half of the squares stand for all", "layer_norm",
           edited(*(removed(f"v_pk_fma_f32 v[14:15], {part}") for part in _PARTS),
                  replaced("v_mul_f32_e32 v14, v32, v222", "v_mul_f32_e32 v14, v32, v222",
                           "v_add_f32_e32 v14, v14, v14")),
           Gate.G2, ("max-abs",), Weaker.NORM),
    Threat("B11", "a term of the sum is dropped", "layer_norm",
           edited(removed("v_pk_fma_f32 v[14:15], v[78:79], v[78:79], v[14:15]")),
           Gate.G2, ("max-abs",), Weaker.NORM),
    Threat("B11", "epsilon is dropped", "layer_norm",
           edited(removed("v_add_f32_e64 v14, v14, s28")), Gate.G2, ("max-abs",), Weaker.FAMILIES),
    Threat("B11", "the sum is accumulated in bf16", "layer_norm",
           edited(replaced("v_add_f32_e32 v14, v14, v15", "v_add_f32_e32 v14, v14, v15",
                           "v_and_b32_e32 v14, 0xffff0000, v14")),
           Gate.G2, ("max-abs",), Weaker.NORM),
    Threat("B11", "weights are rounded to bf16 within the bound", "topksoftmax",
           edited(replaced("v_mul_f32_e32 v11, v11, v15", "v_mul_f32_e32 v11, v11, v15",
                           "v_and_b32_e32 v11, 0xffff0000, v11")),
           Gate.G2, ("accuracy", "bits"), Weaker.NORM),
    Threat("B11", "the bias is not added", "gemm",
           edited(replaced("v_add_f32_dpp v119, v109, v101 row_newbcast:15",
                           "v_mov_b32_e32 v119, v101", nth=-1)),
           Gate.G2, ("max-abs", "cosine")),
)
