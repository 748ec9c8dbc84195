"""The three ways in which kernels round f32 to bf16 on machines without an instruction for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asmevo.operation.operation import Array

ROUNDINGS = ("rtne", "rtna", "rtz")


def to_bf16(values: Array, rounding: str) -> NDArray[np.float64]:
    """bf16 values next to f32 values: the nearest, ties to even (``rtne``) or away from zero
    (``rtna``), or the next towards zero (``rtz``). Infinities and NaNs stay what they are."""
    if rounding not in ROUNDINGS:
        raise ValueError(f"unknown rounding '{rounding}' (known: {', '.join(ROUNDINGS)})")
    with np.errstate(over="ignore"):
        single = np.asarray(values, np.float32)
    bits = single.view(np.uint32)
    # What is added to the bits of a finite f32 before their lower half is dropped.
    increment = np.zeros_like(bits)
    if rounding == "rtne":
        increment += np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    elif rounding == "rtna":
        increment += np.uint32(0x8000)
    rounded = ((bits + increment) & np.uint32(0xFFFF0000)).view(np.float32)
    with np.errstate(invalid="ignore"):  # a signalling NaN is quieted
        return np.where(np.isfinite(single), rounded, single).astype(np.float64)
