"""Products of int8 matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.bf16 import to_bf16
from asmevo.operation.operation import Arrays, Names, Operation
from asmevo.operation.preshuffle import in_rows

_BLOCK = 128  # of the depth


@dataclass(frozen=True)
class ScaledInt8Product(Operation):
    """``out = (a b^T) * row_scale * column_scale + bias``, the product in exact integers.

    ``a`` has ``M`` rows and ``b`` ``N`` rows of ``K`` int8, those of ``a`` as far apart as they fit
    and those of ``b`` in tiles of ``tile`` rows (`in_rows`); ``row_scale`` has ``M`` elements,
    ``column_scale`` and ``bias`` ``N``. ``S`` workgroups share the depth in parts of whole blocks
    of 128, the last one takes the rest; with more than one, the sum is over parts that are rounded
    to bf16, the first of which contains the bias, and if ``cleared`` the host has cleared ``out``.
    ``rounding`` is how results become bf16.
    """

    tile: int = 32
    rounding: str = "rtna"
    cleared: bool = False

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        return {"out": np.zeros_like(arrays["out"])} if self.cleared else {}

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        rows, columns, depth, splits = (int(names[name]) for name in ("M", "N", "K", "S"))
        a = arrays["a"].reshape(rows, -1)[:, :depth].astype(np.float64)
        b = in_rows(arrays["b"], columns, depth, self.tile)[0].astype(np.float64)
        scale = arrays["row_scale"].astype(np.float64)[:, None] * arrays["column_scale"]
        part = -(-(depth // splits) // _BLOCK) * _BLOCK
        parts = []
        for start in range(0, depth, part):
            taken = slice(start, start + part)
            # Exact: every partial sum is an integer far below 2**53.
            parts.append(a[:, taken] @ b[:, taken].T * scale)
        parts[0] += arrays["bias"]
        # Ties are as good as absent in a single part, which its comparison rounds to nearest.
        if len(parts) > 1 or self.rounding == "rtz":
            parts = [to_bf16(values, self.rounding) for values in parts]
        return {"out": np.sum(parts, axis=0).reshape(-1)}
