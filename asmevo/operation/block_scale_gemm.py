"""Products of fp8 matrices with a scale for every block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.bf16 import to_bf16
from asmevo.operation.operation import Array, Arrays, Names, Operation
from asmevo.operation.preshuffle import in_rows


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


@dataclass(frozen=True)
class PreshuffledBlockScaleGemm(BlockScaleGemm):
    """`BlockScaleGemm` plus ``bias`` (N), with ``b`` preshuffled in tiles of 16 rows (`in_rows`)
    and ``a_scale`` by block of columns, then row.

    Results are cut to bf16. ``S`` workgroups share the depth in parts of whole blocks; with more
    than one the host clears ``c``, and the parts, of which the first contains the bias, are cut
    before they are added.
    """

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        cleared = {"c": np.zeros_like(arrays["c"])} if int(names["S"]) > 1 else {}
        return {**super().prepare(arrays, names, rng), **cleared}

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        rows, columns, depth, splits = (int(names[name]) for name in ("M", "N", "K", "S"))
        blocks = -(-depth // self.block)
        a = scaled(arrays["a"].reshape(rows, depth), arrays["a_scale"].reshape(blocks, rows).T, 1,
                   self.block)
        b = scaled(in_rows(arrays["b"], columns, depth)[0], arrays["b_scale"].reshape(-1, blocks),
                   self.block, self.block)
        part = -(-blocks // splits) * self.block
        parts = [a[:, start:start + part] @ b[:, start:start + part].T
                 for start in range(0, depth, part)]
        parts[0] += arrays["bias"].astype(np.float64)
        return {"c": np.sum([to_bf16(values, "rtz") for values in parts], axis=0).reshape(-1)}
