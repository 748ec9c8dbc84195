"""What ``scaled_sum.s`` computes."""

from __future__ import annotations

import numpy as np

from asmevo.operation.operation import Arrays, Names, Operation

_TOTALS = 16


class ScaledSum(Operation):
    """``out[i] = a * in[i] + 1``, added to ``total[i mod 16]``."""

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        out = np.float64(names["a"]) * arrays["in"].astype(np.float64) + 1.0
        total = arrays["total"].astype(np.float64)
        np.add.at(total, np.arange(len(out)) % _TOTALS, out)
        return {"out": out, "total": total}
