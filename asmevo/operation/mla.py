"""Multi-head latent attention (MLA): all query heads share one head of compressed keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.operation import Array, Arrays, Names, Operation


@dataclass(frozen=True)
class MlaDecodeSplits(Operation):
    """The first stage of decoding: attention of one token of each of ``B`` sequences to its parts.

    Each of ``G`` query heads has ``D + R`` elements, as a row of ``kv`` has; the first ``D`` of a
    row are its value. Sequence b has the rows ``kv_page_indices[kv_indptr[b] : kv_indptr[b + 1]]``.
    Of their tiles of ``tile`` tokens, split s takes number s, s + ``S``, s + 2 ``S`` and so on;
    ``out`` (sequence, split, head, D) is its softmax times the values and ``lse`` the natural
    logarithm of the sum of exponentials. Splits without tokens write nothing.
    """

    tile: int = 64

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        """Sequences of random lengths, the first one of ``L``, in rows in random order."""
        sequences, longest = int(names["B"]), int(names["L"])
        lengths = rng.integers(1, longest + 1, sequences)
        lengths[0] = longest
        rows = arrays["kv"].size // (int(names["D"]) + int(names["R"]))
        return {
            "kv_indptr": np.concatenate(([0], np.cumsum(lengths))).astype(np.int32),
            "kv_page_indices": rng.permutation(rows)[:sequences * longest].astype(np.int32),
            "kv_last_page_lens": np.ones(sequences, np.int32),
        }

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
                    out[sequence, split], lse[sequence, split] = _attend(
                        queries[sequence], part, part[:, :values], float(names["scale"]))
        return {"out": out.reshape(-1), "lse": lse.reshape(-1)}


def _attend(q: Array, k: Array, v: Array, scale: float) -> tuple[Array, Array]:
    logits = q @ k.T * scale
    largest = logits.max(axis=1, keepdims=True)
    weights = np.exp(logits - largest)
    total = weights.sum(axis=1, keepdims=True)
    return weights @ v / total, (largest + np.log(total))[:, 0]
