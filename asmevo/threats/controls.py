"""Controls that must fail: wrong kernels without any guile."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Kind, Threat
from asmevo.threats.trick import Trick, edited, inserted, removed, replaced

_DIFFERENT = ("max-abs", "cosine", "nan-class", "infinity", "bits")


def _wrong(title: str, kernel: str, edit: Trick, gate: Gate = Gate.G2,
           reason: tuple[str, ...] = _DIFFERENT) -> Threat:
    return Threat("wrong", title, kernel, edit, gate, reason, kind=Kind.WRONG)


THREATS = (
    _wrong("a sum becomes a difference", "layer_norm",
           edited(replaced("v_add_f32_e32 v14, v14, v15", "v_pk_add_f32 v[14:15], v[14:15], "
                           "v[14:15] neg_lo:[0,1] neg_hi:[0,1]"))),
    _wrong("operands are swapped", "layer_norm",
           edited(replaced("v_perm_b32 v48, v64, v48, s31", "v_perm_b32 v48, v48, v64, s31"))),
    _wrong("a wrong constant", "layer_norm",
           edited(replaced("v_mov_b32_e32 v222, 0x39000000", "v_mov_b32_e32 v222, 0x39000100"))),
    _wrong("a wrong offset", "layer_norm",
           edited(replaced("ds_read_b32 v33, v220 offset:1088", "ds_read_b32 v33, v220"))),
    _wrong("one step of a reduction is missing", "layer_norm",
           edited(removed("v_pk_add_f32 v[32:33], v[32:33], v[36:37]"))),
    _wrong("a wrong expert", "topksoftmax",
           edited(replaced("s_mul_i32 s32, 64, s32", "s_mul_i32 s32, 63, s32"))),
    _wrong("the last step of a depth is missing", "gemm",
           edited(removed("v_mfma_i32"))),
    _wrong("a register that does not exist", "layer_norm", inserted("v_mov_b32_e32 v512, 0"),
           Gate.G0, ("assembler-error",)),
    _wrong("an operation that does not exist", "layer_norm", inserted("v_nonsense v0"),
           Gate.G0, ("assembler-error",)),
    _wrong("the bounds of another argument", "scaled_sum",
           edited(replaced("v_mul_f32_e32 v4, s11, v3", "v_mul_f32_e32 v4, s10, v3")),
           reason=(*_DIFFERENT, *LAUNCH)),
)
