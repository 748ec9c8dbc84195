"""The gradients of attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asmevo.operation.bf16 import to_bf16
from asmevo.operation.operation import Array, Arrays, Names, Operation

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AttentionBackward(Operation):
    """Gradients ``dk`` and ``dv``, and ``dq`` without its last rounding, from ``do``.

    ``B`` sequences of ``S`` queries and ``T`` keys, ``H`` heads of queries, ``R`` of them to a head
    of keys, rows of ``D`` elements: ``q``, ``do``, ``dk`` and ``dv`` are [batch, row, query head,
    column], ``k`` and ``v`` [batch, row, key head, column], ``dq`` is [batch, head, row, column] and
    ``lse`` and ``d`` are [batch, head, row]. What the heads of a group add to ``dk`` and ``dv``
    stays apart.

    ``lse`` is the forward pass's logarithm of the softmax's denominators, ``d`` the sum of ``o do``
    along each row; `prepare` makes both, and clears ``dq``, to which the workgroups add.
    ``mask``: ``full``, or ``top_left`` or ``bottom_right``, where the causal mask's diagonal starts
    or ends. ``rounding`` is that of the weights and of their gradients; ``dk`` and
    ``dv`` are rounded to nearest even.
    """

    mask: str
    rounding: str

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        lse, d = np.zeros(arrays["lse"].shape), np.zeros(arrays["d"].shape)
        rows = int(names["S"])
        for index, (q, k, v, do) in enumerate(_heads(arrays, names)):
            scores = self._scores(q, k, names)
            maxima = scores.max(axis=1, keepdims=True)
            weights = np.exp(scores - maxima)
            total = weights.sum(axis=1, keepdims=True)
            part = slice(index * rows, (index + 1) * rows)
            lse[part] = (maxima + np.log(total))[:, 0]
            d[part] = (weights @ v / total * do).sum(axis=1)
        return {"lse": lse.astype(arrays["lse"].dtype), "d": d.astype(arrays["d"].dtype),
                "dq": np.zeros_like(arrays["dq"])}

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        scale = float(names["scale"])
        dq, dk, dv = [], [], []
        per_row = arrays["lse"].reshape(-1, int(names["S"]), 1), arrays["d"].reshape(
            -1, int(names["S"]), 1)
        for (q, k, v, do), lse, d in zip(_heads(arrays, names), *per_row, strict=True):
            weights = np.exp(self._scores(q, k, names) - lse)
            gradients = to_bf16(weights * (do @ v.T - d), self.rounding)
            dv.append(to_bf16(to_bf16(weights, self.rounding).T @ do, "rtne"))
            dk.append(to_bf16(gradients.T @ q * scale, "rtne"))
            dq.append(gradients @ k * scale)
        shape = int(names["B"]), int(names["H"]), int(names["T"]), int(names["D"])
        return {
            "dq": arrays["dq"].astype(np.float64) + np.concatenate(dq).reshape(-1),
            **{name: np.concatenate(parts).reshape(shape).transpose(0, 2, 1, 3).reshape(-1)
               for name, parts in (("dk", dk), ("dv", dv))},
        }

    def _scores(self, q: Floats, k: Floats, names: Names) -> Floats:
        scores = q @ k.T * float(names["scale"])
        if self.mask != "full":
            rows, keys = scores.shape
            first = {"top_left": 0, "bottom_right": keys - rows}[self.mask]
            scores[~np.tri(rows, keys, first, dtype=np.bool_)] = -np.inf
        return scores


def _heads(arrays: Arrays, names: Names) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """``q``, ``k``, ``v`` and ``do`` of every head of queries."""
    group, columns = int(names["R"]), int(names["D"])
    heads = int(names["H"])

    def split(name: str, count: int) -> Array:
        return arrays[name].reshape(int(names["B"]), -1, count, columns).astype(np.float64)

    q, k, v, do = (split("q", heads), split("k", heads // group), split("v", heads // group),
                   split("do", heads))
    for batch in range(len(q)):
        for head in range(heads):
            yield (q[batch, :, head], k[batch, :, head // group], v[batch, :, head // group],
                   do[batch, :, head])
