"""Products of int8 matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.operation import Array, Arrays, Names, Operation

# A block of the second matrix: 32 columns by 16 bytes of the depth, two of them side by side.
_COLUMNS, _BYTES, _PAIR = 32, 16, 2


def unshuffled(blocks: Array, columns: int, depth: int) -> Array:
    """Rows of ``depth`` elements, one for each column of the product, from AITER's (32, 16) layout.

    aiter/ops/shuffle.py: 32 columns and 32 bytes of depth at a time; within these the depth's
    halves of 16 bytes, then the columns, then the bytes.
    """
    shape = (columns // _COLUMNS, depth // (_PAIR * _BYTES), _PAIR, _COLUMNS, _BYTES)
    return blocks.reshape(shape).transpose(0, 3, 1, 2, 4).reshape(columns, depth)


@dataclass(frozen=True)
class ScaledInt8Product(Operation):
    """``out = (a b^T) * row_scale * column_scale + bias``, the product in exact integers.

    ``a`` has ``M`` rows and ``b`` ``N`` rows of ``K`` int8, the latter in AITER's (32, 16) layout;
    ``row_scale`` has ``M`` elements, ``column_scale`` and ``bias`` ``N``.
    """

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        rows, columns, depth = (int(names[name]) for name in ("M", "N", "K"))
        a = arrays["a"].reshape(rows, depth).astype(np.float64)
        b = unshuffled(arrays["b"], columns, depth).astype(np.float64)
        product = a @ b.T  # exact: every partial sum is an integer far below 2**53
        scaled = product * arrays["row_scale"].astype(np.float64)[:, None]
        scaled *= arrays["column_scale"].astype(np.float64)
        return {"out": (scaled + arrays["bias"].astype(np.float64)).reshape(-1)}
