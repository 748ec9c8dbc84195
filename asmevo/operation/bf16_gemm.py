"""Products of bf16 matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.bf16 import to_bf16
from asmevo.operation.operation import Arrays, Names, Operation

_BLOCK = 64  # of the depth


@dataclass(frozen=True)
class SplitProduct(Operation):
    """``d = a b^T`` of ``M`` and ``N`` rows of ``K`` bf16, in parts of the depth.

    ``S`` workgroups share the depth in parts of whole blocks of 64; each part is rounded to bf16.
    A ``semaphore`` for every tile is 0 before and after.
    """

    rounding: str = "rtne"

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        return {"semaphore": np.zeros_like(arrays["semaphore"])}

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        depth, splits = int(names["K"]), int(names["S"])
        a, b = (arrays[name].astype(np.float64).reshape(-1, depth) for name in ("a", "b"))
        part = -(-depth // (splits * _BLOCK)) * _BLOCK
        parts = [to_bf16(a[:, start:start + part] @ b[:, start:start + part].T, self.rounding)
                 for start in range(0, depth, part)]
        return {"d": np.sum(parts, axis=0).reshape(-1),
                "semaphore": np.zeros(len(arrays["semaphore"]))}
