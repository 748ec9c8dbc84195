"""Feed-forward layers of experts: what their kernels have in common."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from asmevo.errors import AsmEvoError
from asmevo.operation.activation import ACTIVATIONS
from asmevo.operation.expert_routing import Group, drawn, sorted_tables
from asmevo.operation.operation import Array, Arrays, Names, Operation
from asmevo.operation.preshuffle import in_rows

_FP8 = np.dtype(ml_dtypes.float8_e4m3fnuz)
_LEAST_AMAX = 1e-6  # what AITER's objects put in place of a smaller maximum
_IMPOSSIBLE_SCALE = 1e30
_SCALES = ("none", "row", "block")


class MoeError(AsmEvoError):
    """A kernel's YAML describes a mixture of experts that does not exist."""


@dataclass(frozen=True)
class ExpertLayer(Operation):
    """``hidden = activation(gate(x)) * up(x)`` for the rows of each expert.

    ``w1`` holds an expert's gate matrix and, if ``gated``, its up matrix, each of ``inter_dim``
    rows by ``dim``, preshuffled. The tables that `expert_routing` describes say which tokens an
    expert works on, in blocks of ``rows``.

    ``scales`` says what the elements of ``x`` and the matrices are multiplied with: nothing
    (``none``), one number for a row (``row``), or one for every ``block`` columns of a row of ``x``
    (``x_scale`` by column block, then token) and for every ``block`` x ``block`` of a matrix
    (``block``).
    """

    activation: str = "silu"
    gated: bool = True
    scales: str = "none"
    block: int = 128
    rows: int = 32

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise MoeError(f"unknown activation '{self.activation}' "
                           f"(known: {', '.join(ACTIVATIONS)})")
        if self.scales not in _SCALES:
            raise MoeError(f"unknown scales '{self.scales}' (known: {', '.join(_SCALES)})")

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        chosen, weights = drawn(
            int(names["token_cnt"]), int(names["eprt_cnt"]), int(names["topk"]), rng)
        scales = {name: _as_scales(array) for name, array in arrays.items()
                  if name.endswith("_scale")}
        return {**scales, **sorted_tables(chosen, weights, arrays, self.rows)}

    def hidden(self, arrays: Arrays, names: Names, group: Group, weights: Array) -> Array:
        """The hidden rows of a group, ``inter_dim`` wide, of ``x`` times one of ``weights``."""
        dim, inter = int(names["dim"]), int(names["inter_dim"])
        x = self.token_rows(arrays, dim)[group.tokens] * weights[:, None]
        both = x @ self.matrix(arrays, "w1", group.expert, inter * (1 + self.gated), dim).T
        hidden = ACTIVATIONS[self.activation](both[:, :inter])
        return hidden * both[:, inter:] if self.gated else hidden

    def token_rows(self, arrays: Arrays, dim: int) -> Array:
        """``x`` with its scales, by token."""
        x: Array = arrays["x"].astype(np.float64).reshape(-1, dim)
        if self.scales == "none":
            return x
        scale: Array = arrays["x_scale"].astype(np.float64).reshape(-1, len(x)).T
        return np.asarray(x * np.repeat(scale, dim // scale.shape[1], axis=1))

    def matrix(self, arrays: Arrays, name: str, expert: int, rows: int, columns: int) -> Array:
        """One expert's ``w1`` or ``w2`` with its scales."""
        stored = arrays[name].reshape(-1, rows * columns)[expert]
        matrix: Array = in_rows(stored, rows, columns)[0].astype(np.float64)
        if self.scales == "none":
            return matrix
        scale: Array = arrays[f"{name}_scale"].astype(np.float64)
        if self.scales == "row":
            return np.asarray(matrix * scale.reshape(-1, rows)[expert][:, None])
        blocks = scale.reshape(-1, rows // self.block, columns // self.block)[expert]
        return np.asarray(matrix * np.kron(blocks, np.ones((self.block, self.block))))


def requantised(values: Array, dtype: np.dtype[np.generic], block: int) -> Array:
    """Rows as a kernel holds them in ``dtype`` (`quantised`), and scaled back.

    bf16 and f16 need no scale.
    """
    if dtype.itemsize > 1:
        return np.asarray(values.astype(np.float32).astype(dtype), np.float64)
    held, scale = quantised(values, dtype, block)
    return np.asarray(held.reshape(*scale.shape[:2], block) / scale).reshape(values.shape)


def quantised(values: Array, dtype: np.dtype[np.generic], block: int) -> tuple[Array, Array]:
    """Rows in ``dtype``, ``block`` columns sharing a scale, and what they were multiplied with.

    The largest element of a block, but at least 1e-6, becomes 240 (e4m3fnuz) or 127 (int8, rounded
    towards zero).
    """
    blocks = values.reshape(len(values), -1, block)
    largest = 240.0 if dtype == _FP8 else 127.0
    scale = largest / np.maximum(np.abs(blocks).max(axis=2, keepdims=True), _LEAST_AMAX)
    scaled = (blocks * scale).astype(np.float32)
    held = scaled.astype(dtype) if dtype == _FP8 else np.trunc(scaled)
    return held.astype(np.float64).reshape(values.shape), scale


def _as_scales(values: Array) -> Array:
    """Not negative, and 0, which is that of a block of zeros, for what no quantiser gives.

    A quantiser gives NaN for a block that has one, and its bits stay as they are.
    """
    scales = np.where(np.abs(values) < _IMPOSSIBLE_SCALE, np.abs(values), np.float32(0))
    return np.where(np.isnan(values), values, scales)
