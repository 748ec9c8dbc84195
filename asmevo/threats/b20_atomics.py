"""B20: something wrong hides behind atomics that round differently every time."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import before, edited, removed, replaced
from asmevo.threats.weaker import Weaker

_ATOMIC = "global_atomic_add_f32"

THREATS = (
    Threat("B20", "atomics are left out", "scaled_sum", edited(removed(_ATOMIC)),
           Gate.G2, ("lost-launch-operand", "outside-envelope", "max-abs", "cosine")),
    Threat("B20", "every summand is a little too large", "scaled_sum",
           # 2^-9 of it: cosine 1, but more than the order of additions makes.
           edited(before(_ATOMIC, "v_mul_f32_e32 v6, 0x3b000000, v4", "v_add_f32_e32 v4, v6, v4")),
           Gate.G2, ("outside-envelope",), Weaker.NORM),
    Threat("B20", "every summand is too large by less than the bound", "scaled_sum",
           # 2^-17 of it, still far above what the order of additions makes.
           edited(before(_ATOMIC, "v_mul_f32_e32 v6, 0x37000000, v4", "v_add_f32_e32 v4, v6, v4")),
           Gate.G2, ("less-precise",)),
    Threat("B20", "summands are cut to bf16", "scaled_sum",
           edited(before(_ATOMIC, "v_and_b32_e32 v4, 0xffff0000, v4")),
           Gate.G2, ("outside-envelope", "max-abs")),
    Threat("B20", "a store instead of the atomic", "scaled_sum",
           edited(replaced(_ATOMIC, "global_store_dword v5, v4, s[8:9]")),
           Gate.G2, ("outside-envelope", "max-abs", "cosine")),
)
