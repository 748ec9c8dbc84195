"""Attention of one new token to a key-value cache that is kept in pages."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial

import ml_dtypes
import numpy as np

from asmevo.operation.attention import online_softmax
from asmevo.operation.bf16 import to_bf16
from asmevo.operation.operation import Array, Arrays, Names, Operation

_UNUSED = -1
_TILE = 256
_VECTOR_BYTES = 16


@dataclass(frozen=True)
class PagedDecode(Operation):
    """``softmax2(q k^T * scale) v`` for one query token of each of ``B`` sequences.

    Every group of ``G`` query heads shares one of ``H`` key-value heads of ``D`` elements; softmax2
    has base 2. Row b of ``block_tables`` names the ``L`` pages of sequence b, of ``P`` tokens each,
    ``context_lens`` says how many tokens it has. With x elements in 16 bytes, ``k`` is laid out
    (page, head, D / x, token, x), ``v`` (page, head, token / x, D, x) and a token's scale, if the
    cache is quantised, (page, head, token). Weights, relative to the largest logit up to the end of
    their tile of 256 tokens, are rounded to bf16 before they multiply the values.
    """

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        """Tables that use every page at most once, in random order, and contexts with partial last
        pages. Entries beyond a context are no page, so that following one would fault.

        AITER's objects take the path without masks when the *pages* of a context fill a tile of 256
        tokens: 241 to 255 tokens come out wrong, so no context is as long.
        """
        sequences, pages, tokens = (int(names[name]) for name in ("B", "L", "P"))
        lengths = rng.integers(1, pages * tokens + 1, sequences, dtype=np.int32)
        lengths[0] = pages * tokens - int(names["short"])
        lengths[(lengths > _TILE - tokens) & (lengths < _TILE)] = _TILE
        count = arrays["k"].size // (int(names["H"]) * tokens * int(names["D"]))
        tables = rng.permutation(count)[:sequences * pages].reshape(sequences, pages)
        used = np.arange(pages) * tokens < lengths[:, None]
        prepared = {
            "context_lens": lengths,
            "block_tables": np.where(used, tables, _UNUSED).astype(np.int32).reshape(-1),
        }
        for data, scale in (("k", "k_scale"), ("v", "v_scale")):
            if scale in arrays:
                unit = np.sqrt(np.mean(np.square(arrays[data].astype(np.float64)))) or 1.0
                prepared[scale] = (rng.uniform(0.5, 1.5, arrays[scale].size) / unit
                                   ).astype(np.float32)
        return prepared

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        sequences, heads, group, size = (int(names[name]) for name in ("B", "H", "G", "D"))
        queries = arrays["q"].astype(np.float64).reshape(sequences, heads, group, size)
        tables = arrays["block_tables"].reshape(sequences, -1)
        out = np.empty(queries.shape)
        for sequence, length in enumerate(arrays["context_lens"]):
            pages = tables[sequence, :-(-length // int(names["P"]))]
            for head in range(heads):
                cache = [values[:length] for values in _pages(arrays, names, pages, head)]
                out[sequence, head] = self._attend(queries[sequence, head], *cache,
                                                   scale=float(names["scale"]))
        return {"out": out.reshape(-1)}

    def _attend(self, q: Array, k: Array, v: Array, k_scale: Array, v_scale: Array, *,
                scale: float) -> Array:
        """Rows of ``q`` to all tokens of one head."""
        numerators, denominators, _ = online_softmax(
            q @ (k * k_scale[:, None]).T * scale * math.log(2), v * v_scale[:, None],
            partial(to_bf16, rounding="rtna"), _TILE)
        return numerators / denominators


class _Quantised(PagedDecode):
    """`PagedDecode` with products of 8-bit numbers.

    A row of ``q``, and its unnormalised weights times the values' scales over a tile of 256 tokens,
    are multiplied by ``limit`` over their largest magnitude (at least 1e-6) and rounded. Weights
    are relative to the largest logit up to the end of their tile.
    """

    limit: float

    @staticmethod
    @abstractmethod
    def rounded(values: Array) -> Array:
        """To the 8-bit type."""

    def quantised(self, rows: Array) -> tuple[Array, Array]:
        """Rounded rows, and by what to multiply them to get the rows back.

        In f32, because the quotients of bf16 numbers often lie half way between two results.
        """
        values = rows.astype(np.float32)
        largest = np.maximum(np.abs(values).max(axis=1, keepdims=True), np.float32(1e-6))
        factor = np.float32(self.limit) * (np.float32(1) / largest)
        return self.rounded(values * factor).astype(np.float64), 1 / factor.astype(np.float64)

    def _attend(self, q: Array, k: Array, v: Array, k_scale: Array, v_scale: Array, *,
                scale: float) -> Array:
        q, step = self.quantised(q)
        logits = q @ k.T * step * k_scale * scale
        largest = np.full((len(q), 1), -np.inf)
        total, out = np.zeros((len(q), 1)), np.zeros(q.shape)
        for start in range(0, len(k), _TILE):
            tile = slice(start, start + _TILE)
            before = largest
            largest = np.maximum(before, logits[:, tile].max(axis=1, keepdims=True))
            weights = np.exp2(logits[:, tile] - largest)
            scaled, step = self.quantised(weights * v_scale[tile])
            kept = np.exp2(before - largest)
            total = total * kept + weights.sum(axis=1, keepdims=True)
            out = out * kept + scaled @ v[tile] * step
        return out / total


class PagedDecodeInt8(_Quantised):
    """Rounding towards zero, as a conversion to integers does."""

    limit = 127

    @staticmethod
    def rounded(values: Array) -> Array:
        return np.trunc(values)


class PagedDecodeFp8(_Quantised):
    """Rounding to the nearest e4m3fnuz."""

    limit = 240

    @staticmethod
    def rounded(values: Array) -> Array:
        return values.astype(ml_dtypes.float8_e4m3fnuz)


def _pages(arrays: Arrays, names: Names, pages: Array, head: int) -> tuple[
    Array, Array, Array, Array
]:
    """Keys, values and their scales of one head, token by token, from these pages in order."""
    heads, size, tokens = (int(names[name]) for name in ("H", "D", "P"))
    vector = _VECTOR_BYTES // arrays["k"].itemsize
    k = arrays["k"].reshape(-1, heads, size // vector, tokens, vector)[pages, head]
    v = arrays["v"].reshape(-1, heads, tokens // vector, size, vector)[pages, head]
    scales = [arrays[name].reshape(-1, heads, tokens)[pages, head].reshape(-1).astype(np.float64)
              if name in arrays else np.ones(len(pages) * tokens)
              for name in ("k_scale", "v_scale")]
    return (k.transpose(0, 2, 1, 3).reshape(-1, size).astype(np.float64),
            v.transpose(0, 1, 3, 2).reshape(-1, size).astype(np.float64), scales[0], scales[1])
