"""Attention: softmax of scaled scores times values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from asmevo.operation.bf16 import to_bf16
from asmevo.operation.operation import Array, Arrays, Names, Operation
from asmevo.operation.sequences import Rows, heads, pack

Floats = NDArray[np.float64]


def may_see(queries: int, keys: int) -> NDArray[np.bool_]:
    """A causal mask aligned at the bottom right: the last query sees every key."""
    return np.tri(queries, keys, keys - queries, dtype=np.bool_)


def scaled_scores(q: Array, k: Array, scale: float, causal: bool) -> Floats:
    """``scale * q k^T``, minus infinity where a query may not see a key."""
    scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
    if causal:
        scores[~may_see(*scores.shape)] = -np.inf
    return scores


def online_softmax(
    scores: Floats, values: Floats, rounded: Callable[[Floats], Floats], tile: int,
    backwards: bool = False,
) -> tuple[Floats, Floats, Floats]:
    """Numerators, denominators and maxima of a softmax over tiles of ``tile`` keys.

    Weights are relative to the maximum of the tiles so far, and ``rounded`` before they meet the
    values, but not in the denominator (Dao et al., "FlashAttention"). In exact arithmetic none of
    this shows; it decides which way a weight is rounded.
    """
    rows, keys = scores.shape
    maxima = np.full((rows, 1), float(np.finfo(np.float32).min))
    numerators, denominators = np.zeros((rows, values.shape[1])), np.zeros((rows, 1))
    tiles = range(0, keys, tile)
    for first in reversed(tiles) if backwards else tiles:
        part = scores[:, first:first + tile]
        larger = np.maximum(maxima, part.max(axis=1, keepdims=True))
        faded = np.exp(maxima - larger)
        weights = np.exp(part - larger)
        maxima = larger
        denominators = denominators * faded + weights.sum(axis=1, keepdims=True)
        numerators = numerators * faded + rounded(weights) @ values[first:first + tile]
    return numerators, denominators, maxima


@dataclass(frozen=True)
class AttentionForward(Operation):
    """``o = softmax(scale * q k^T) v``, and ``lse``, the logarithm of the denominators.

    Sequences and heads are those of `heads`; their rows are ``qk_dim`` and ``v_dim`` elements long
    and placed by strides (`Rows.of`), ``lse_head`` is the stride of ``lse`` from head to head.
    ``rounding`` is that of the weights to bf16 before they meet the values, and of the result; keys
    come in tiles of ``key_tile``. If ``causal``, a workgroup does an early tile of ``query_tile``
    queries and then the late one that makes the work even; ``backwards``: going through the keys
    from the last to the first. (The middle one of an odd number of tiles it does twice.) A query
    that sees no key has the result 0 and the logarithm minus infinity.
    """

    causal: bool
    rounding: str = "rtne"
    backwards: bool = False
    query_tile: int = 256
    key_tile: int = 32

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        return pack(arrays, names, rng)

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        o = np.full(len(arrays["o"]), np.nan)
        lse = np.full(len(arrays["lse"]), np.nan)
        for rows, key_rows in heads(arrays, names):
            result, logarithm = self._head(arrays, names, rows, key_rows)
            rows.of(o, names, "o", int(names["v_dim"]), arrays["o"].itemsize)[:] = result
            start = (rows.batch * int(names["H"]) + rows.head) * int(names["lse_head"]) // 4
            lse[start + rows.first:][:rows.count] = logarithm[:, 0]
        return {"o": o, "lse": lse}

    def _rounded(self, weights: Floats) -> Floats:
        return to_bf16(weights, self.rounding)

    def _scales(self, arrays: Arrays, names: Names, key_rows: Rows) -> tuple[float, float]:
        """Of the scores, and of the values."""
        return float(names["scale"]), 1.0

    def _head(self, arrays: Arrays, names: Names, rows: Rows, key_rows: Rows) -> tuple[
        Floats, Floats
    ]:
        q = rows.of(arrays["q"], names, "q", int(names["qk_dim"]))
        k = key_rows.of(arrays["k"], names, "k", int(names["qk_dim"]))
        v = key_rows.of(arrays["v"], names, "v", int(names["v_dim"])).astype(np.float64)
        scale, value_scale = self._scales(arrays, names, key_rows)
        scores = scaled_scores(q, k, scale, self.causal)
        parts = []
        blocks = -(-rows.count // self.query_tile)
        for block in range(blocks):
            part = scores[block * self.query_tile:(block + 1) * self.query_tile]
            parts.append(online_softmax(
                part, v, self._rounded, self.key_tile,
                backwards=self.causal and self.backwards and block >= max(1, blocks // 2),
            ))
        numerators, denominators, maxima = (np.concatenate(p) for p in zip(*parts, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            result = np.where(denominators > 0, numerators / denominators * value_scale, 0)
            logarithm = np.where(denominators > 0, maxima + np.log(denominators), -np.inf)
        return to_bf16(result, self.rounding), logarithm


@dataclass(frozen=True)
class AttentionForwardDense(AttentionForward):
    """The same of dense tensors with ``D`` columns, for kernels that do not take strides in bytes:
    ``q`` and ``o`` are [batch, row, head, column], ``lse`` is [batch, head, row].
    """

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        columns, heads_of_keys = int(names["D"]), int(names["H"]) // int(names["R"])
        made: dict[str, int | float] = {
            **names, "qk_dim": columns, "v_dim": columns, "lse_head": 4 * int(names["S"])}
        for name, rows, count in (("q", "S", int(names["H"])), ("o", "S", int(names["H"])),
                                  ("k", "T", heads_of_keys), ("v", "T", heads_of_keys)):
            head = columns * arrays[name].itemsize
            made |= {f"{name}_head": head, f"{name}_row": count * head,
                     f"{name}_batch": int(names[rows]) * count * head}
        return super().reference(arrays, made)


@dataclass(frozen=True)
class AttentionForwardFp8(AttentionForward):
    """The same of FP8 queries, keys and values, each with one scale for every sequence and head
    of keys in ``q_scale``, ``k_scale`` and ``v_scale``. The weights, at most 1, are rounded to FP8.

    ``reciprocal``: the scales of queries and keys cancel out, being powers of two.
    """

    key_tile: int = 64
    reciprocal: bool = False

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        shape, dtype = arrays["q_scale"].shape, arrays["q_scale"].dtype
        scales = {name: rng.uniform(0.5, 2, shape).astype(dtype)
                  for name in ("q_scale", "k_scale", "v_scale")}
        if self.reciprocal:
            exponents = rng.integers(-3, 4, shape).astype(dtype)
            scales |= {"q_scale": np.exp2(exponents), "k_scale": np.exp2(-exponents)}
        return {**super().prepare(arrays, names, rng), **scales}

    def _rounded(self, weights: Floats) -> Floats:
        return weights.astype(ml_dtypes.float8_e4m3fnuz).astype(np.float64)

    def _scales(self, arrays: Arrays, names: Names, key_rows: Rows) -> tuple[float, float]:
        q, k, v = (float(arrays[name][
            (key_rows.sequence * int(names[f"{name}_batch"])
             + key_rows.head * int(names[f"{name}_head"])) // 4])
            for name in ("q_scale", "k_scale", "v_scale"))
        return float(names["scale"]) * q * k, v
