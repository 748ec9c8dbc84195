"""Element types that the names of vector operations give away (CDNA3 ISA, opcode tables)."""

from __future__ import annotations

import re
from functools import lru_cache

from asmevo.dispatch.dispatch import ElementType
from asmevo.isa.instruction import Instruction

_TYPES = {
    "f64": ElementType.F64, "f32": ElementType.F32, "xf32": ElementType.F32,
    "f16": ElementType.F16, "bf16": ElementType.BF16, "fp8": ElementType.FP8,
    "bf8": ElementType.BF8, "i8": ElementType.I8, "u8": ElementType.U8, "i16": ElementType.I16,
    "u16": ElementType.U16, "i32": ElementType.I32, "u32": ElementType.U32,
    "i64": ElementType.I64, "u64": ElementType.U64, "i24": ElementType.I32,
    "u24": ElementType.U32,
}
_SHAPE = re.compile(r"\d+x\d+x\d+(bf16|f16|i8|f32|f64|xf32)?")
_UBYTE = re.compile(r"ubyte\d")

# Operations that move 32-bit patterns about: what they carry keeps its type.
MOVES = frozenset({
    "v_mov_b32", "v_mov_b64", "v_pk_mov_b32", "v_cndmask_b32", "v_readlane_b32",
    "v_readfirstlane_b32", "v_writelane_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32",
    "v_accvgpr_mov_b32", "ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32", "s_mov_b32",
    "s_mov_b64", "s_cselect_b32", "s_cselect_b64", "v_swap_b32", "s_pack_ll_b32_b16",
    "s_pack_lh_b32_b16", "s_pack_hh_b32_b16",
})
# Whose last source only selects.
SELECTS = frozenset({"v_cndmask_b32"})


@lru_cache(maxsize=4096)
def operation_types(op: str) -> tuple[ElementType | None, ElementType | None]:
    """The types of an operation's result and of its sources, ``None`` where its name has none.

    Of a matrix operation the sources are the factors; what it adds to has the result's type.
    """
    if not op.startswith("v_"):
        return None, None
    words = op.split("_")[1:]
    if words[0] in ("mfma", "smfmac"):
        factors = next((_TYPES[m[1]] for w in words if (m := _SHAPE.fullmatch(w)) and m[1]), None)
        named = [_TYPES[w] for w in words if w in _TYPES]
        return named[0], factors or named[-1]
    if any(_UBYTE.fullmatch(word) for word in words):
        return ElementType.F32, ElementType.U8
    if words[:2] == ["fma", "mix"] or words[1:2] == ["mixlo"] or words[1:2] == ["mixhi"]:
        return _TYPES[words[-1]], None
    if words[0] in ("lshlrev", "lshrrev", "ashrrev", "bfe", "mbcnt", "bcnt", "sad"):
        return _TYPES.get(words[-1], ElementType.I32), None
    named = [_TYPES[word] for word in words if word in _TYPES]
    if not named:
        return None, None
    if words[0] in ("cmp", "cmpx"):
        return None, named[-1]
    if words[0] in ("ldexp",):
        return named[0], named[0]
    return named[0], named[-1]


def float_sources(instruction: Instruction) -> bool:
    """Whether the operation takes its sources for floating-point numbers."""
    kind = operation_types(instruction.op)[1]
    return kind is not None and kind.is_float
