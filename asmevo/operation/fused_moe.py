"""Mixture-of-experts feed-forward layers in one kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.expert_layer import ExpertLayer, requantised
from asmevo.operation.expert_routing import groups
from asmevo.operation.operation import Arrays, Names


@dataclass(frozen=True)
class FusedMoe(ExpertLayer):
    """``out[t] += weight * down(hidden)`` for each expert of token t; the host clears ``out``.

    ``w2`` holds an expert's down matrix of ``dim`` rows by ``inter_dim``, preshuffled. What goes
    into it is in the type of the weights: `requantised` with a scale for every ``hidden_block``
    columns.
    """

    hidden_block: int = 128

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        return {**super().prepare(arrays, names, rng), "out": np.zeros_like(arrays["out"])}

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        dim, inter, tokens = (int(names[name]) for name in ("dim", "inter_dim", "token_cnt"))
        out = arrays["out"].astype(np.float64).reshape(tokens, dim)
        for group in groups(arrays, tokens, self.rows):
            hidden = self.hidden(arrays, names, group, np.ones(len(group.tokens)))
            hidden = requantised(hidden, arrays["w2"].dtype, self.hidden_block)
            down = self.matrix(arrays, "w2", group.expert, dim, inter)
            # A token is at most once among an expert's rows, so this adds every row.
            out[group.tokens] += group.weights[:, None] * (hidden @ down.T)
        return {"out": out.reshape(-1)}
