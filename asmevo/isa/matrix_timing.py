"""Passes of matrix operations (AMD matrix instruction calculator; LLVM, SISchedule).

A pass is four clock cycles. The wait states that a matrix result needs grow with its passes.
"""

from __future__ import annotations

import re
from enum import Enum

from asmevo.isa.instruction import Instruction
from asmevo.isa.targets import GFX90A, GFX950


class MatrixClass(Enum):
    """The pipeline a matrix operation uses, which selects its hazard rows."""

    XDL = "xdl"
    F32 = "f32"
    F64_4X4 = "f64-4x4"
    F64_16X16 = "f64-16x16"


_NAME = re.compile(
    r"v_(?:mfma|mfma_scale|smfmac)_([a-z0-9]+)_([0-9]+x[0-9]+)(x[0-9]+(?:_[0-9]+b(?=_))?)"
    r"_?([a-z0-9]+)\w*")

# gfx942 and gfx950: shape -> passes; a shape with several blocks names them.
_SHAPE_PASSES = {
    "4x4x1_16b": 2, "4x4x4_16b": 2,
    "16x16x8": 4, "16x16x16": 4, "16x16x32": 4, "16x16x64": 4, "16x16x128": 4,
    "16x16x1_4b": 8, "16x16x4_4b": 8, "16x16x4": 8,
    "32x32x4": 8, "32x32x8": 8, "32x32x16": 8, "32x32x32": 8, "32x32x64": 8,
    "32x32x1_2b": 16, "32x32x2": 16, "32x32x4_2b": 16,
    "4x4x4_4b": 4,
}
# gfx90a: the size of the result alone decides.
_SIZE_PASSES = {"4x4": 2, "16x16": 8, "32x32": 16}
# cbsz and blgp of an f8f6f4 operation name the formats of A and B; 0 and 1 have eight bits.
_EIGHT_BIT_FORMATS = (None, 0, 1)


def passes(instruction: Instruction, isa: str) -> int:
    """Passes of a matrix instruction; ``isa`` is one of :data:`asmevo.isa.targets.TARGETS`.

    Raises ValueError for any other instruction.
    """
    result, size, depth, source = _fields(instruction.op)
    if isa == GFX90A:
        return 4 if (result, size) == ("f64", "4x4") else _SIZE_PASSES[size]
    if isa == GFX950 and (result, size) == ("f64", "16x16"):
        return 16
    count = _SHAPE_PASSES[size + depth]
    if source == "f8f6f4" and (instruction.modifier("cbsz") in _EIGHT_BIT_FORMATS
                               or instruction.modifier("blgp") in _EIGHT_BIT_FORMATS):
        return 2 * count
    return count


def matrix_class(op: str, isa: str) -> MatrixClass:
    """The pipeline of a matrix operation; gfx90a has one for everything but f64.

    Raises ValueError for any other operation.
    """
    result, size, _, source = _fields(op)
    if result == "f64":
        return MatrixClass.F64_4X4 if size == "4x4" else MatrixClass.F64_16X16
    return MatrixClass.F32 if source == "f32" and isa != GFX90A else MatrixClass.XDL


def multiply_adds(op: str) -> tuple[str, int]:
    """The source type of a matrix operation as its name has it, and its multiply-adds.

    Those of all blocks and lanes; a sparse operation counts as the dense one that it stands for, as
    AMD's peak figures with sparsity do. Raises ValueError for any other operation.
    """
    _, size, depth, source = _fields(op)
    rows, columns = size.split("x")
    steps, _, blocks = depth[1:].partition("_")
    count = int(rows) * int(columns) * int(steps) * int(blocks.rstrip("b") or 1)
    return source, count


def _fields(op: str) -> tuple[str, str, str, str]:
    """(result type, rows x columns, depth and blocks, type of A) of an operation's name."""
    match = _NAME.fullmatch(op)
    if match is None:
        raise ValueError(f"'{op}' is not a matrix operation")
    return match[1], match[2], match[3], match[4]
