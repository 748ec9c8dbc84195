"""B9: a wait, a barrier or a hazard's distance is missing."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import edited, removed, replaced

THREATS = (
    Threat("B9", "arguments are used before they arrive", "layer_norm",
           edited(removed("s_waitcnt lgkmcnt(0)")), Gate.G1, ("new-missing-lgkmcnt",)),
    Threat("B9", "a vector load is used before it arrives", "layer_norm",
           edited(removed("s_waitcnt vmcnt(6)")), Gate.G1, ("new-missing-vmcnt",)),
    Threat("B9", "a wait is one load too loose", "layer_norm",
           edited(replaced("s_waitcnt vmcnt(6)", "s_waitcnt vmcnt(7)")),
           Gate.G1, ("new-missing-vmcnt",)),
    Threat("B9", "LDS is used before it arrives", "layer_norm",
           edited(removed("s_waitcnt lgkmcnt(0)", nth=2)), Gate.G1, ("new-missing-lgkmcnt",)),
    Threat("B9", "a barrier is missing", "layer_norm", edited(removed("s_barrier")),
           Gate.G1, ("barrier-removed",)),
    Threat("B9", "the barrier stands before the writes that it is for", "layer_norm",
           edited(removed("s_barrier"), replaced(
               "ds_write_b32 v221, v12", "s_barrier", "ds_write_b32 v221, v12")),
           Gate.G2, ("max-abs", "sanitizer", "nan-class")),
    Threat("B9", "LDS is not waited for before the barrier", "layer_norm",
           edited(replaced("s_waitcnt lgkmcnt(0)", "s_nop 0", nth=1)),
           Gate.G1, ("new-missing-lgkmcnt-barrier",)),
    Threat("B9", "no distance between a result and its DPP read", "topksoftmax",
           edited(removed("s_nop 1")), Gate.G1, ("new-valu-dpp",)),
    Threat("B9", "a distance to a DPP read is one short", "topksoftmax",
           edited(replaced("s_nop 1", "s_nop 0")), Gate.G1, ("new-valu-dpp",)),
    Threat("B9", "no distance between a result and its v_readlane", "topksoftmax",
           edited(removed("s_nop 0", nth=1)), Gate.G1, ("new-valu-readlane",)),
    Threat("B9", "a tile is multiplied before it is in LDS", "gemm",
           edited(removed("s_barrier")), Gate.G1, ("barrier-removed",)),
)
