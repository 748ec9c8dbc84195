"""B22: a hang."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import before, edited, replaced
from asmevo.threats.weaker import Weaker

THREATS = (
    Threat("B22", "a loop without end", "layer_norm",
           edited(replaced("s_cmp_eq_u32 s53, 1", "s_cmp_eq_u32 s53, -1")),
           Gate.G2, ("fault-budget", "fault-memory", "fault-timeout")),
    Threat("B22", "a loop without end that touches nothing", "layer_norm",
           edited(replaced("s_add_u32 s53, s53, 1", "s_add_u32 s53, s53, 0"),
                  before("s_cmp_eq_u32 s53, 1", "s_mul_i32 s52, s52, 0")),
           Gate.G2, (*LAUNCH, "fault-budget", "fault-timeout")),
    Threat("B22", "a hang on shapes that were never tried", "layer_norm",
           # M >> 7 is added to the loop's bound check.
           edited(replaced("s_cmp_eq_u32 s53, 1", "s_lshr_b32 s40, s29, 7",
                           "s_add_u32 s40, s40, s53", "s_cmp_eq_u32 s40, 1")),
           Gate.G1, LAUNCH, Weaker.STATIC),
)
