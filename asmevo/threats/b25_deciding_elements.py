"""B25: right while no single element decides: parts of a maximum left out, narrower sums."""

from __future__ import annotations

import re

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import Rewritten, edited, replaced
from asmevo.threats.weaker import Weaker

_MAXIMA = ("max-abs", "nan-class", "infinity", "less-precise", "held-out")
# A tile's first 16 sums of 64.
_FIRST_SUMS = re.compile(r"v_cvt_f32_i32_e32 \w+, (v(?:19[2-9]|20[0-7]))")


def _narrow(line: str) -> str:
    found = _FIRST_SUMS.fullmatch(line)
    return f"v_mul_i32_i24_e32 {found[1]}, 1, {found[1]}\n{line}" if found else line


THREATS = (
    Threat("B25", "the maximum leaves the last wave out", "softmax",
           edited(replaced("v_max3_f32 v1, v1, v20, v21", "v_max3_f32 v1, v1, v20, v20")),
           Gate.G2, _MAXIMA, Weaker.STATIC),
    Threat("B25", "the maximum leaves two waves out", "softmax",
           edited(replaced("v_max3_f32 v1, v1, v18, v19", "s_nop 0")),
           Gate.G2, _MAXIMA, Weaker.STATIC),
    Threat("B25", "the maximum of all lanes starts at zero", "softmax",
           edited(replaced("s_mov_b32 s4, 0xff800000", "s_mov_b32 s4, 0")),
           Gate.G2, _MAXIMA, Weaker.STATIC),
    Threat("B25", "the first sums of a tile keep 24 bits", "i8gemm", Rewritten(_narrow),
           Gate.G2, ("max-abs", "cosine", "held-out"), Weaker.STATIC),
)
