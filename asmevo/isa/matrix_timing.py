"""Passes of gfx942's matrix operations (AMD matrix instruction calculator; LLVM, SISchedule).

A pass is four clock cycles. The wait states that a matrix result needs grow with its passes.
"""

from __future__ import annotations

from enum import Enum


class MatrixClass(Enum):
    """The pipeline a matrix operation uses, which selects its hazard rows."""

    XDL = "xdl"
    F32 = "f32"
    F64_4X4 = "f64-4x4"
    F64_16X16 = "f64-16x16"


# Shape -> passes; a shape with several blocks names them.
_SHAPE_PASSES = {
    "4x4x1_16b": 2, "4x4x4_16b": 2,
    "16x16x8": 4, "16x16x16": 4, "16x16x32": 4, "16x16x64": 4,
    "16x16x1_4b": 8, "16x16x4_4b": 8, "16x16x4": 8,
    "32x32x4": 8, "32x32x8": 8, "32x32x16": 8, "32x32x32": 8,
    "32x32x1_2b": 16, "32x32x2": 16, "32x32x4_2b": 16,
    "4x4x4_4b": 4,
}


def passes(op: str) -> int:
    """Passes of a ``v_mfma_*`` or ``v_smfmac_*`` operation. Raises KeyError for any other."""
    _, _, shape = _fields(op)
    return _SHAPE_PASSES[shape]


def matrix_class(op: str) -> MatrixClass:
    """The pipeline of a ``v_mfma_*`` or ``v_smfmac_*`` operation."""
    kind, source, shape = _fields(op)
    if kind == "f64":
        return MatrixClass.F64_4X4 if shape.startswith("4x4") else MatrixClass.F64_16X16
    return MatrixClass.F32 if source == "f32" else MatrixClass.XDL


def _fields(op: str) -> tuple[str, str, str]:
    """(result type, source type, shape) of ``v_mfma_<result>_<shape>_<source>[_<source>]``."""
    _, _, result, size, *rest = op.split("_")
    if rest and rest[0].endswith("b") and rest[0][:-1].isdigit():
        return result, rest[1], f"{size}_{rest[0]}"
    return result, rest[0], size
