"""The first of two kernels that make up a mixture of experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.expert_layer import ExpertLayer
from asmevo.operation.expert_routing import groups
from asmevo.operation.operation import Arrays, Names


@dataclass(frozen=True)
class MoeFirstStage(ExpertLayer):
    """``out[t, k] = hidden`` of token t at the k-th of its experts, ``inter_dim`` wide."""

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        inter, tokens, top = (int(names[name]) for name in ("inter_dim", "token_cnt", "topk"))
        out = np.full((tokens, top, inter), np.nan)
        for group in groups(arrays, tokens, self.rows):
            out[group.tokens, group.choices] = self.hidden(arrays, names, group)
        return {"out": out.reshape(-1)}
