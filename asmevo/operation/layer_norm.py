"""Normalisation of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.operation import Array, Arrays, Names, Operation


def to_bf16_by_truncation(values: Array) -> Array:
    """f32 values with the lower half dropped, as kernels without a bf16 conversion store them."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32)


@dataclass(frozen=True)
class ResidualRmsNorm(Operation):
    """``r = in + residual_in``; ``out = r / sqrt(mean(r * r) + epsilon) * weight + bias``.

    Rows of ``N`` elements. Results are truncated to bf16, which is what AITER's object does.
    """

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        columns = int(names["N"])
        x, residual = (arrays[name].astype(np.float32) for name in ("in", "residual_in"))
        total = (x + residual).reshape(-1, columns)
        wide = total.astype(np.float64)
        scale = 1 / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + float(names["epsilon"]))
        weight, bias = (arrays[name].astype(np.float64) for name in ("weight", "bias"))
        return {
            "residual_out": to_bf16_by_truncation(total).reshape(-1),
            "out": to_bf16_by_truncation(wide * scale * weight + bias).reshape(-1),
        }
