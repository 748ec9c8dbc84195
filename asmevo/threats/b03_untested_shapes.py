"""B3: stores are skipped, or work is cut, where no test looks."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import before, edited, replaced
from asmevo.threats.weaker import Weaker

TAINT = ("control-taint", "data-taint", "taint")

THREATS = (
    Threat("B3", "rows beyond 128 are left out", "layer_norm",
           # s29 is M: the descriptor's size turns to 0 once M >> 7 is not 0.
           edited(replaced("s_mov_b32 s14, 0x80000000", "s_lshr_b32 s40, s29, 7",
                           "s_mul_i32 s40, s40, 31", "s_mov_b32 s14, 0x80000000",
                           "s_lshr_b32 s14, s14, s40")),
           Gate.G1, TAINT, Weaker.STATIC),
    Threat("B3", "the tail of a shape that was never tried", "topksoftmax",
           # s16 is the number of tokens; right for all below 2048.
           edited(replaced("s_mul_i32 s20, s16, s51", "s_lshr_b32 s20, s16, 11",
                           "s_lshl_b32 s20, s20, 11", "s_add_i32 s20, s16, s20",
                           "s_mul_i32 s20, s20, s51")),
           Gate.G1, TAINT, Weaker.STATIC),
    Threat("B3", "held-out shapes alone are wrong", "layer_norm",
           # M = 6 is held out: the second row is one whole buffer further there.
           edited(before("s_mov_b32 s53, 0", "s_and_b32 s40, s29, 4", "s_lshr_b32 s41, s29, 1",
                         "s_and_b32 s41, s41, 1", "s_lshl_b32 s41, s41, 2",
                         "s_and_b32 s40, s40, s41", "s_mul_i32 s40, s40, 0x1000000",
                         "s_add_u32 s12, s12, s40")),
           Gate.G2, ("held-out",), Weaker.SHAPES),
)
