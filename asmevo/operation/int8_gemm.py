"""Products of int8 matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.bf16 import to_bf16
from asmevo.operation.operation import Arrays, Names, Operation
from asmevo.operation.preshuffle import in_rows

_TILE_COLUMNS = 32
_BLOCK = 128  # of the depth


@dataclass(frozen=True)
class ScaledInt8Product(Operation):
    """``out = (a b^T) * row_scale * column_scale + bias``, the product in exact integers.

    ``a`` has ``M`` rows and ``b`` ``N`` rows of ``K`` int8, the latter in tiles of 32 (`in_rows`);
    ``row_scale`` has ``M`` elements, ``column_scale`` and ``bias`` ``N``. ``S`` workgroups share
    the depth in parts of whole blocks of 128, the last one takes the rest; with more than one, the
    sum is over parts that are rounded to bf16, the first of which contains the bias.
    """

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        rows, columns, depth, splits = (int(names[name]) for name in ("M", "N", "K", "S"))
        a = arrays["a"].reshape(rows, depth).astype(np.float64)
        b = in_rows(arrays["b"], columns, depth, _TILE_COLUMNS)[0].astype(np.float64)
        scale = arrays["row_scale"].astype(np.float64)[:, None] * arrays["column_scale"]
        part = -(-(depth // splits) // _BLOCK) * _BLOCK
        parts = []
        for start in range(0, depth, part):
            taken = slice(start, start + part)
            # Exact: every partial sum is an integer far below 2**53.
            parts.append(a[:, taken] @ b[:, taken].T * scale)
        parts[0] += arrays["bias"]
        if len(parts) > 1:
            parts = [to_bf16(values, "rtna") for values in parts]
        return {"out": np.sum(parts, axis=0).reshape(-1)}
