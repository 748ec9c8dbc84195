"""Multi-head latent attention (MLA): query heads share one head of compressed keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from asmevo.operation.attention import online_softmax
from asmevo.operation.bf16 import to_bf16
from asmevo.operation.operation import Array, Arrays, Names, Operation


@dataclass(frozen=True)
class MlaDecodeSplits(Operation):
    """The first stage of decoding: attention of one token of each of ``B`` sequences to its parts.

    Each of ``G`` query heads has ``D + R`` elements, as a row of ``kv`` has; the first ``D`` of a
    row are its value. Sequence b has the rows ``kv_page_indices[kv_indptr[b] : kv_indptr[b + 1]]``.
    Of their tiles of ``tile`` tokens, split s takes number s, s + ``S``, s + 2 ``S`` and so on;
    ``out`` (sequence, split, head, D) is its softmax times the values and ``lse`` the natural
    logarithm of the sum of exponentials. Splits without tokens write nothing. Weights, relative to
    the largest logit up to the end of their tile, are rounded to bf16 before they multiply the
    values, but not in the sum.
    """

    tile: int = 64

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        """Sequences of ``L`` tokens at most and half as many at least, the first one of ``L``, in
        rows in random order."""
        sequences, longest = int(names["B"]), int(names["L"])
        lengths = rng.integers((longest + 1) // 2, longest + 1, sequences)
        lengths[0] = longest
        rows = arrays["kv"].size // (int(names["D"]) + int(names["R"]))
        tables = {
            "kv_indptr": np.concatenate(([0], np.cumsum(lengths))).astype(np.int32),
            "kv_page_indices": rng.permutation(rows)[:sequences * longest].astype(np.int32),
            "kv_last_page_lens": np.ones(sequences, np.int32),
            "qo_indptr": np.arange(sequences + 1, dtype=np.int32),
        }
        return {name: table for name, table in tables.items() if name in arrays}

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        sequences, splits, heads = (int(names[name]) for name in ("B", "S", "G"))
        values, width = int(names["D"]), int(names["D"]) + int(names["R"])
        queries = arrays["q"].astype(np.float64).reshape(sequences, heads, width)
        rows = arrays["kv"].astype(np.float64).reshape(-1, width)
        out = np.full((sequences, splits, heads, values), np.nan)
        lse = np.full((sequences, splits, heads), np.nan)
        for sequence, (start, stop) in enumerate(zip(
                arrays["kv_indptr"][:-1], arrays["kv_indptr"][1:], strict=True)):
            pages = arrays["kv_page_indices"][start:stop]
            tile = np.arange(len(pages)) // self.tile
            for split in range(splits):
                part = rows[pages[tile % splits == split]]
                if len(part):
                    out[sequence, split], lse[sequence, split] = self._attend(
                        queries[sequence], part, part[:, :values], arrays, float(names["scale"]))
        return {"out": out.reshape(-1), "lse": lse.reshape(-1)}

    def _attend(self, q: Array, k: Array, v: Array, arrays: Arrays,
                scale: float) -> tuple[Array, Array]:
        """Rows of ``q`` to one split; the result and the logarithm."""
        return self._softmax(q @ k.T * scale, v)

    def _softmax(self, logits: Array, v: Array) -> tuple[Array, Array]:
        numerators, denominators, maxima = online_softmax(logits, v, self._rounded, self.tile)
        return numerators / denominators, (maxima + np.log(denominators))[:, 0]

    def _rounded(self, weights: Array) -> Array:
        return to_bf16(weights, "rtna")


class MlaDecodeFp8Splits(MlaDecodeSplits):
    """`MlaDecodeSplits` in fp8 (e4m3fnuz), the weights too, with one scale of all queries,
    ``q_scale``, and one of all rows, ``kv_scale``.
    """

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        scales = {name: np.array([value], np.float32)
                  for name, value in (("q_scale", 0.75), ("kv_scale", 1.25))}
        return {**super().prepare(arrays, names, rng), **scales}

    def _attend(self, q: Array, k: Array, v: Array, arrays: Arrays,
                scale: float) -> tuple[Array, Array]:
        q_scale, kv_scale = (float(arrays[name][0]) for name in ("q_scale", "kv_scale"))
        return self._softmax(q @ k.T * (scale * q_scale * kv_scale), v * kv_scale)

    def _rounded(self, weights: Array) -> Array:
        return weights.astype(np.float32).astype(ml_dtypes.float8_e4m3fnuz).astype(np.float64)
