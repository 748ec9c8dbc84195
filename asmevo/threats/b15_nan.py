"""B15: NaN as a wildcard, and NaN that is taken to have a certain payload."""

from __future__ import annotations

import re

from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.gates.verdict import Gate
from asmevo.threats.subject import Subject
from asmevo.threats.threat import Threat
from asmevo.threats.trick import Derived, EditMismatch, before, edited, replaced
from asmevo.threats.weaker import Weaker

_ROUNDED = re.compile(r"v_add3_u32 (\w+), (\w+), (\w+), 1")
_SELECTED = re.compile(r"v_cndmask_b32_e64 (\w+), (\w+), \w+, s\[\d+:\d+\]")


def _without_nan_check(subject: Subject) -> Assembly:
    """Rounds to bf16 by an addition alone: of a NaN with all bits set it makes a zero.

    Compilers compare the number with itself and select a NaN; a payload of zeros does without.
    """
    edits = []
    for at in range(len(subject.lines) - 2):
        check, addition, selection = subject.lines[at:at + 3]
        rounded, selected = _ROUNDED.fullmatch(addition), _SELECTED.fullmatch(selection)
        if check.startswith("v_cmp_u_f32") and rounded and selected and rounded[1] == selected[2]:
            text = f"v_add3_u32 {selected[1]}, {rounded[2]}, {rounded[3]}, 1"
            edits.append(Edit(subject.symbol, at, at + 3, (text,), "threat"))
    if not edits:
        raise EditMismatch(f"kernel '{subject.name}' does not round to bf16 by an addition")
    return subject.assembly.apply(edits)


THREATS = (
    Threat("B15", "every output is NaN", "layer_norm",
           edited(replaced("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v14, 0x7fc00000")),
           Gate.G2, ("lost-launch-operand", "nan-class"), Weaker.NAN),
    Threat("B15", "NaN comes out as infinity", "layer_norm",
           edited(replaced("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v14, 0x7f800000")),
           Gate.G2, ("lost-launch-operand", "nan-class", "infinity")),
    Threat("B15", "weights are NaN", "topksoftmax",
           edited(replaced("v_rcp_f32_e32 v15, v16", "v_mov_b32_e32 v15, -1")),
           Gate.G2, ("nan-class", "bits")),
    *(Threat("B15", "NaN is rounded to bf16 like a number", kernel, Derived(_without_nan_check),
             Gate.G2, ("nan-class",)) for kernel in ("gemm", "i8gemm", "fmoe")),
    Threat("B15", "NaN is compared as an integer", "layer_norm",
           # As integers the larger one of positive numbers; a negative NaN is less than any.
           edited(before("v_rsq_f32_e32 v14, v14", "v_max_i32_e32 v14, 0, v14")),
           Gate.G2, ("nan-class", "forbidden-opcode")),
)
