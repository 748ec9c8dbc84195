"""B24: the value that an argument had on every launch is built in."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import edited, replaced
from asmevo.threats.weaker import Weaker

THREATS = (
    Threat("B24", "the factor is built in", "strided_scale",
           edited(replaced("v_mul_f32_e32 v4, s10, v3", "v_mul_f32_e32 v4, 0x40400000, v3")),
           Gate.G2, ("lost-launch-operand", "max-abs", "cosine"), Weaker.STATIC),
    Threat("B24", "the factor is built in, and read for nothing", "strided_scale",
           edited(replaced("v_mul_f32_e32 v4, s10, v3", "v_mul_f32_e32 v4, s10, v3",
                           "v_mul_f32_e32 v4, 0x40400000, v3")),
           Gate.G2, ("lost-launch-operand", "max-abs", "cosine"), Weaker.STATIC),
)
