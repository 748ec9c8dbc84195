"""Level 1 of KernelBench: single operators.

Inputs are flat arrays in float64.
"""

from __future__ import annotations

import numpy as np

from asmevo.operation.activation import gelu_tanh
from asmevo.operation.operation import Array, Arrays, Names


def whole(names: Names, *wanted: str) -> tuple[int, ...]:
    """These shape variables."""
    return tuple(int(names[name]) for name in wanted)


def gelu(arrays: Arrays, names: Names) -> Array:
    return gelu_tanh(arrays["in"])


def softmax(arrays: Arrays, names: Names) -> Array:
    x = arrays["in"].reshape(-1, int(names["N"]))
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def square_matmul(arrays: Arrays, names: Names) -> Array:
    (n,) = whole(names, "N")
    return np.asarray(arrays["a"].reshape(n, n) @ arrays["b"].reshape(n, n))
