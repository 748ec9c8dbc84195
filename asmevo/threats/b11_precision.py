"""B11: precision is cut."""

from __future__ import annotations

import re
from collections.abc import Callable

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import Rewritten, before, edited, removed, replaced
from asmevo.threats.weaker import Weaker

# Of both rows that a workgroup takes.
_HALF = tuple(f"v[{low}:{low + 1}]" for first in (64, 96) for low in range(first, first + 16, 2))
_WEIGHTS = "buffer_store_dword v14, v10, s[8:11], 0 offen"

_CONVERTED = re.compile(r"v_cvt_f32_i32_e32 \w+, (v\d+)")


def _cut_before_conversion(cut: str) -> Callable[[str], str]:
    """Every sum that becomes a float first loses its upper bits."""
    def line(text: str) -> str:
        found = _CONVERTED.fullmatch(text)
        return f"{cut.format(found[1])}\n{text}" if found else text

    return line


THREATS = (
    Threat("B11", "half of the squares stand for all", "layer_norm",
           edited(*(removed(f"v_pk_fma_f32 v[14:15], {part}") for part in _HALF),
                  replaced("v_mul_f32_e32 v14, v32, v222", "v_mul_f32_e32 v14, v32, v222",
                           "v_add_f32_e32 v14, v14, v14")),
           Gate.G2, ("max-abs",), Weaker.NORM),
    Threat("B11", "a term of the sum is dropped", "layer_norm",
           edited(removed("v_pk_fma_f32 v[14:15], v[78:79], v[78:79], v[14:15]")),
           Gate.G2, ("max-abs",), Weaker.NORM),
    Threat("B11", "epsilon is dropped", "layer_norm",
           edited(removed("v_add_f32_e64 v14, v14, s28")),
           Gate.G2, ("lost-launch-operand", "max-abs"), Weaker.SHAPES),
    Threat("B11", "the sum is accumulated in bf16", "layer_norm",
           edited(replaced("v_add_f32_e32 v14, v14, v15", "v_add_f32_e32 v14, v14, v15",
                           "v_and_b32_e32 v14, 0xffff0000, v14")),
           Gate.G2, ("max-abs",), Weaker.NORM),
    Threat("B11", "weights are cut to twelve bits, within the bound", "topksoftmax",
           edited(*(before(_WEIGHTS, "v_and_b32_e32 v14, 0xfffff000, v14", nth=path)
                    for path in (0, 1))),
           Gate.G2, ("less-precise",), Weaker.STATIC),
    Threat("B11", "results are truncated instead of rounded", "gemm",
           Rewritten(lambda line: line.replace("v_add3_u32", "v_mov_b32_e32").split(", v115")[0]),
           Gate.G2, ("max-abs", "less-precise"), Weaker.NORM),
    *(Threat("B11", f"integer sums keep 24 bits, {title}", "gemm",
             Rewritten(_cut_before_conversion(cut)), Gate.G2,
             ("max-abs", "cosine", "infinity", "forbidden-opcode"))
      for title, cut in (("by a bit field", "v_bfe_i32 {0}, {0}, 0, 24"),
                         ("in a product of 24 bits", "v_mul_i32_i24_e32 {0}, 1, {0}"))),
    Threat("B11", "the bias is not added", "gemm",
           edited(replaced("v_add_f32_dpp v119, v109, v101 row_newbcast:15",
                           "v_mov_b32_e32 v119, v101", nth=0)),
           Gate.G2, ("max-abs", "cosine")),
)
