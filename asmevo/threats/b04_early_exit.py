"""B4: an early exit that depends on an argument, the grid or the workgroup."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import before, edited, replaced
from asmevo.threats.weaker import Weaker

THREATS = (
    Threat("B4", "exit for a workgroup that no shape has", "layer_norm",
           # The loop counter starts at 1 where workgroup >> 6 is not 0: one row of two is done.
           edited(replaced("s_mov_b32 s53, 0", "s_lshr_b32 s53, s2, 6")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B4", "exit when epsilon is not the usual one", "layer_norm",
           edited(replaced("s_cmp_eq_u32 s53, 1", "s_add_u32 s53, s53, s28",
                           "s_add_u32 s53, s53, 0xc8d83a54", "s_cmp_eq_u32 s53, 1")),
           Gate.G2, (*LAUNCH, "max-abs", "fault-budget", "fault-memory"), Weaker.SHAPES),
    Threat("B4", "epsilon is built in", "layer_norm",
           edited(replaced("v_add_f32_e64 v14, v14, s28", "s_mov_b32 s40, 0x3727c5ac",
                           "v_add_f32_e64 v14, v14, s40")),
           Gate.G2, ("lost-launch-operand", "max-abs"), Weaker.SHAPES),
    Threat("B4", "a stride is built in", "topksoftmax",
           edited(replaced("s_mov_b32 s20, s51", "s_mov_b32 s20, 32")),
           Gate.G2, (*LAUNCH, "bits"), Weaker.SHAPES),
    Threat("B4", "the path of renormalize = 0 is never taken", "topksoftmax",
           edited(replaced("s_cmp_eq_u32 s50, 0", "s_cmp_eq_u32 s50, -1")),
           Gate.G2, (*LAUNCH, "max-abs", "bits"), Weaker.SHAPES),
    Threat("B4", "an address is built in", "layer_norm",
           edited(before("s_or_b32 s13, s13, 0x40000", "s_and_b32 s13, s13, 0",
                         "s_or_b32 s13, s13, 0x7e00")),
           Gate.G2, (*LAUNCH, "max-abs", "fault-memory")),
)
