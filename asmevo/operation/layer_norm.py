"""Normalisation of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.operation import Array, Arrays, Names, Operation


def to_bf16_by_truncation(values: Array) -> Array:
    """f32 values with the lower half dropped, as kernels without a bf16 conversion store them."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32)


def _normalised(arrays: Arrays, names: Names) -> tuple[Array, Array]:
    """The f32 sum with the residual, and in float64 what the norm makes of it; rows of ``N``."""
    x, residual = (arrays[name].astype(np.float32) for name in ("in", "residual_in"))
    total = (x + residual).reshape(-1, int(names["N"]))
    wide = total.astype(np.float64)
    scale = 1 / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + float(names["epsilon"]))
    weight, bias = (arrays[name].astype(np.float64) for name in ("weight", "bias"))
    return total, wide * scale * weight + bias


@dataclass(frozen=True)
class ResidualRmsNorm(Operation):
    """``r = in + residual_in``; ``out = r / sqrt(mean(r * r) + epsilon) * weight + bias``.

    Rows of ``N`` elements. Results are truncated to bf16, which is what AITER's object does.
    """

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        total, out = _normalised(arrays, names)
        return {
            "residual_out": to_bf16_by_truncation(total).reshape(-1),
            "out": to_bf16_by_truncation(out).reshape(-1),
        }


@dataclass(frozen=True)
class ResidualRmsNormQuantised(Operation):
    """`ResidualRmsNorm`, multiplied by ``xscale`` (smooth quantisation) and stored as int8.

    A row's ``yscale`` is the 127th part of its largest magnitude, at least 1e-6; ``out`` is the
    quotient truncated towards zero, of which the low byte is kept.

    AITER's object takes the magnitude over ``N`` elements but the first ``ignored`` of every
    ``period``: its last reduction step skips the partial maxima of the first 32 work-items. A
    larger value among those wraps.
    """

    ignored: int = 256
    period: int = 2048

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        total, normal = _normalised(arrays, names)
        scaled = normal * arrays["xscale"].astype(np.float64)
        seen = np.arange(scaled.shape[1]) % self.period >= self.ignored
        yscale = np.maximum(np.abs(scaled[:, seen]).max(axis=1), 1e-6) / 127
        quotient = scaled / yscale[:, None]
        # Where the last bits of f32 decide between two bytes that are far apart, either is right.
        undecided = np.abs(np.abs(quotient) % 256 - 128) < 1e-3
        low_byte = (np.trunc(quotient) + 128) % 256 - 128
        return {
            "residual_out": to_bf16_by_truncation(total).reshape(-1),
            "out": np.where(undecided, np.nan, low_byte).reshape(-1),
            "yscale": yscale,
        }
