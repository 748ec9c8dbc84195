"""The first of two kernels that make up a mixture of experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.expert_layer import ExpertLayer, quantised
from asmevo.operation.expert_routing import groups
from asmevo.operation.operation import Arrays, Names


@dataclass(frozen=True)
class MoeFirstStage(ExpertLayer):
    """``out[t, k] = hidden`` of token t at the k-th of its experts, ``inter_dim`` wide.

    ``weighted``: the weight that t gives that expert multiplies what goes into the activation and
    what its result is multiplied with. ``hidden_block``: not the hidden row
    but, in the type of the weights, what becomes of it when ``hidden_block`` columns share a scale
    (`quantised`); the scales, which are in the rest of ``out``, are not checked.
    """

    weighted: bool = False
    hidden_block: int | None = None

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        inter, tokens, top = (int(names[name]) for name in ("inter_dim", "token_cnt", "topk"))
        out = np.full(len(arrays["out"]), np.nan)
        rows = out[:tokens * top * inter].reshape(tokens, top, inter)
        for group in groups(arrays, tokens, self.rows):
            weights = group.weights if self.weighted else np.ones(len(group.tokens))
            hidden = self.hidden(arrays, names, group, weights)
            if self.hidden_block is not None:
                hidden = quantised(hidden, arrays["w1"].dtype, self.hidden_block)[0]
            rows[group.tokens, group.choices] = hidden
        return {"out": out}
