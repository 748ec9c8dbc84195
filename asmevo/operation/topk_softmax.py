"""Choosing experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.operation import Arrays, Names, Operation


@dataclass(frozen=True)
class TopKSoftmax(Operation):
    """Softmax over the experts of a token, then the largest ``topk`` weights in descending order.

    ``gating`` has rows of ``expert`` logits; ``indices`` and ``weights`` have rows ``out_stride``
    bytes apart. The weights sum to one if ``renormalize``.
    """

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        experts, top = int(names["expert"]), int(names["topk"])
        stride = int(names["out_stride"]) // 4
        gating = arrays["gating"].astype(np.float64).reshape(-1, experts)
        probability = np.exp(gating - gating.max(axis=1, keepdims=True))
        probability /= probability.sum(axis=1, keepdims=True)
        order = np.argsort(-probability, axis=1, kind="stable")[:, :top]
        weights = np.take_along_axis(probability, order, axis=1)
        if names["renormalize"]:
            weights /= weights.sum(axis=1, keepdims=True)
        result = {}
        for name, values in (("indices", order), ("weights", weights)):
            rows = np.full((len(gating), stride), np.nan)
            rows[:, :top] = values
            result[name] = rows.reshape(-1)
        return result
