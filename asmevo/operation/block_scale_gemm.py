"""Products of fp8 matrices with a scale for every block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.operation import Array, Arrays, Names, Operation


def scaled(values: Array, scales: Array, rows: int, columns: int) -> Array:
    """``values`` times the scale of their block of ``rows`` by ``columns``, in float64.

    The last two axes are those of the matrix; edge blocks may be partial.
    """
    height, width = values.shape[-2:]
    wide = scales.astype(np.float64)
    wide = wide[..., np.arange(height) // rows, :][..., np.arange(width) // columns]
    return np.asarray(values.astype(np.float64) * wide)


def positive(rng: np.random.Generator, like: Array, low: float, high: float) -> Array:
    """Scales: never zero, negative or NaN."""
    return rng.uniform(low, high, like.shape).astype(like.dtype)


@dataclass(frozen=True)
class BlockScaleGemm(Operation):
    """``c = (a * a_scale) @ (b * b_scale)^T`` with fp8 ``a`` (M by K) and ``b`` (N by K).

    ``a_scale`` has one value for each row and ``block`` columns of ``a``, ``b_scale`` one for each
    ``block`` by ``block`` of ``b``.
    """

    block: int = 128

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        return {name: positive(rng, arrays[name], 0.5, 2.0) for name in ("a_scale", "b_scale")}

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        k, blocks = int(names["K"]), -(-int(names["K"]) // self.block)
        a = scaled(arrays["a"].reshape(-1, k), arrays["a_scale"].reshape(-1, blocks), 1, self.block)
        b = scaled(arrays["b"].reshape(-1, k), arrays["b_scale"].reshape(-1, blocks), self.block,
                   self.block)
        return {"c": (a @ b.T).reshape(-1)}
