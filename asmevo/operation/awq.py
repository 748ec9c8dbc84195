"""Products with 4-bit weights in the AWQ layout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.operation import Array, Arrays, Names, Operation

# Column n of a group of eight is in these bits of its 32-bit word, counted in nibbles.
_NIBBLE = np.array([0, 4, 1, 5, 2, 6, 3, 7], np.uint32)


def unpacked(words: Array, columns: int) -> Array:
    """4-bit values, rows of ``columns``, from 32-bit words of eight values each."""
    wide = words.view(np.uint32).reshape(-1, columns // 8, 1)
    return ((wide >> (4 * _NIBBLE)) & np.uint32(15)).reshape(-1, columns).astype(np.float64)


@dataclass(frozen=True)
class AwqGemm(Operation):
    """``c[s] = a[:, part s] @ ((b - zeros) * scales)[part s, :]``, f16.

    ``b`` is K rows of N 4-bit weights; ``zeros`` and ``scales`` have a row for each ``group_size``
    rows. Blocks of ``block`` rows go to the S parts in turn; the caller adds the parts.
    """

    block: int

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        n, k, parts = int(names["N"]), int(names["K"]), int(names["S"])
        group = np.arange(k) // int(names["group_size"])
        a = arrays["a"].astype(np.float64).reshape(-1, k)
        zeros = unpacked(arrays["zeros"], n)[group]
        scales = arrays["scales"].reshape(-1, n)[group].astype(np.float64)
        # The difference is an integer; its product is rounded to f16 as the weight that it is.
        weights = ((unpacked(arrays["b"], n) - zeros) * scales).astype(np.float16)
        part = np.arange(k) // self.block % parts
        result = [a[:, part == s] @ weights[part == s].astype(np.float64) for s in range(parts)]
        return {"c": np.concatenate(result).reshape(-1)}
