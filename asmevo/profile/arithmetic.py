"""Arithmetic operations of instructions, and how many a compute unit can do in a clk.

Counted as AMD's profilers do: an addition, a multiplication or a transcendental is one operation, a
multiply-add two, packed ones twice that. Minimum, maximum, comparison and conversion are none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.matrix_timing import multiply_adds
from asmevo.isa.parse import parse
from asmevo.profile.pipes import WAVE, Pipe, pipe_times

_SIMDS = 4


class Number(StrEnum):
    """The type of the factors."""

    F64 = "f64"
    F32 = "f32"
    XF32 = "xf32"
    F16 = "f16"
    BF16 = "bf16"
    FP8 = "fp8"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    I4 = "i4"

    @property
    def is_integer(self) -> bool:
        return self.value.startswith("i")


@dataclass(frozen=True, slots=True, order=True)
class OperationClass:
    """Operations that one pipe does at one rate: ``matrix`` says which pipe."""

    number: Number
    matrix: bool

    def __str__(self) -> str:
        return f"{self.number} {'MFMA' if self.matrix else 'VALU'}"


_NUMBERS = {
    "f64": Number.F64, "f32": Number.F32, "xf32": Number.XF32, "f16": Number.F16,
    "bf16": Number.BF16, "fp8": Number.FP8, "bf8": Number.FP8, "i8": Number.I8, "u8": Number.I8,
    "i32": Number.I32, "u32": Number.I32, "u64": Number.I32, "i64": Number.I32, "i16": Number.I16,
    "u16": Number.I16, "i4": Number.I4, "u4": Number.I4, "i24": Number.I32, "u24": Number.I32,
}
_VALU = re.compile(
    r"v_(pk_)?(add|sub|subrev|mul|fma|fmac|fmaak|fmamk|mad|mac|madak|madmk|add3|fma_mix|fma_mixlo"
    r"|fma_mixhi)(?:_co|_legacy|_lo|_hi)*_(f64|f32|f16|bf16|[iu](?:64|32|24|16))(?:_[iu](?:16|24|32))?")
_DOT = re.compile(r"v_dot(\d+)c?_[fiu]32_([a-z0-9]+)")
_TRANSCENDENTAL = re.compile(r"v_\w+?_(f64|f32|f16)")
_TWO = frozenset({"fma", "fmac", "fmaak", "fmamk", "mad", "mac", "madak", "madmk", "add3",
                  "fma_mix", "fma_mixlo", "fma_mixhi"})


def operations(instruction: Instruction) -> tuple[OperationClass, int] | None:
    """Class and number of the operations of one wave's instruction, all 64 lanes on.

    ``None`` for an instruction without any.
    """
    if instruction.unit is Unit.MFMA:
        source, count = multiply_adds(instruction.op)
        number = _NUMBERS.get(source)
        return (OperationClass(number, True), 2 * count) if number else None
    if instruction.unit is Unit.TRANS:
        found = _TRANSCENDENTAL.match(instruction.op)
        return (OperationClass(_NUMBERS[found[1]], False), WAVE) if found else None
    if instruction.unit is not Unit.VALU:
        return None
    dot = _DOT.fullmatch(instruction.op)
    if dot and dot[2] in _NUMBERS:
        return OperationClass(_NUMBERS[dot[2]], False), 2 * int(dot[1]) * WAVE
    found = _VALU.fullmatch(instruction.op)
    if not found:
        return None
    count = WAVE * (2 if found[1] else 1) * (2 if found[2] in _TWO else 1)
    return OperationClass(_NUMBERS[found[3]], False), count


# The operation that sets the ceiling of each class.
_BEST = {
    OperationClass(Number.F64, True): "v_mfma_f64_16x16x4_f64 a[0:7], v[0:1], v[2:3], a[0:7]",
    OperationClass(Number.F32, True): "v_mfma_f32_32x32x2_f32 a[0:15], v0, v1, a[0:15]",
    OperationClass(Number.XF32, True):
        "v_mfma_f32_32x32x4_xf32 a[0:15], v[0:1], v[2:3], a[0:15]",
    OperationClass(Number.F16, True): "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]",
    OperationClass(Number.BF16, True): "v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], a[0:15]",
    OperationClass(Number.FP8, True):
        "v_mfma_f32_32x32x16_fp8_fp8 a[0:15], v[0:1], v[2:3], a[0:15]",
    OperationClass(Number.I8, True): "v_mfma_i32_32x32x16_i8 a[0:15], v[0:1], v[2:3], a[0:15]",
    OperationClass(Number.F64, False): "v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]",
    OperationClass(Number.F32, False): "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]",
    OperationClass(Number.F16, False): "v_pk_fma_f16 v0, v1, v2, v3",
    OperationClass(Number.I32, False): "v_mad_u32_u24 v0, v1, v2, v3",
    OperationClass(Number.I16, False): "v_pk_mad_u16 v0, v1, v2, v3",
    OperationClass(Number.I8, False): "v_dot4_i32_i8 v0, v1, v2, v3",
    OperationClass(Number.I4, False): "v_dot8_i32_i4 v0, v1, v2, v3",
}


def peak(operation_class: OperationClass, isa: str) -> float | None:
    """Operations in a clk of one compute unit; ``None`` for a class without a known ceiling.

    Sparse matrix operations do twice as many as this.
    """
    text = _BEST.get(operation_class)
    if text is None:
        return None
    instruction = parse(text)
    done = operations(instruction)
    pipe = Pipe.MATRIX if operation_class.matrix else Pipe.VALU
    return None if done is None else _SIMDS * done[1] / pipe_times(instruction, isa)[pipe]
