"""Level 1 of KernelBench: single operators.

Inputs are flat arrays in float64; shape variables are those of conf/kernel/kb_*.yaml.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from asmevo.operation.activation import gelu_tanh
from asmevo.operation.operation import Array, Arrays, Names


def shaped(arrays: Arrays, name: str, names: Names, *shape: str | int) -> Array:
    """An array in the shape that these shape variables or numbers give."""
    sizes = [int(names[s]) if isinstance(s, str) else s for s in shape]
    return arrays[name].reshape(sizes)


def upper_triangles(arrays: Arrays, names: Names) -> Arrays:
    """``a`` and ``b`` with zeros below their diagonals, in the type they have."""
    return {name: np.triu(shaped(arrays, name, names, "N", "N")).reshape(-1) for name in "ab"}


def gelu(arrays: Arrays, names: Names) -> Array:
    return gelu_tanh(arrays["in"])


def softmax(arrays: Arrays, names: Names) -> Array:
    return softmax_of_rows(shaped(arrays, "in", names, "M", "N"))


def softmax_of_rows(x: Array) -> Array:
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def square_matmul(arrays: Arrays, names: Names) -> Array:
    a, b = (shaped(arrays, name, names, "N", "N") for name in "ab")
    return np.asarray(a @ b)


triu_matmul = square_matmul


def tall_matmul(arrays: Arrays, names: Names) -> Array:
    a, b = shaped(arrays, "a", names, "M", 16), shaped(arrays, "b", names, 16, "N")
    return np.asarray(a @ b)


def batched_matmul(arrays: Arrays, names: Names) -> Array:
    a = shaped(arrays, "a", names, "B", "M", "K")
    b = shaped(arrays, "b", names, "B", "K", "N")
    return np.asarray(a @ b)


def depthwise_conv2d(arrays: Arrays, names: Names) -> Array:
    x = shaped(arrays, "in", names, "B", "C", "H", "W")
    weight = shaped(arrays, "weight", names, "C", 3, 3)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.asarray(np.einsum("bchwij,cij->bchw", windows, weight))


def conv2d(arrays: Arrays, names: Names) -> Array:
    x = shaped(arrays, "in", names, "B", "C", "H", "W")
    weight = shaped(arrays, "weight", names, "O", "C", 3, 3)
    windows = sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.asarray(np.einsum("bchwij,ocij->bohw", windows, weight))


def rms_norm(arrays: Arrays, names: Names) -> Array:
    x = shaped(arrays, "in", names, "B", "F", "P")
    return np.asarray(x / np.sqrt((x * x).mean(axis=1, keepdims=True) + names["epsilon"]))


def layer_norm(arrays: Arrays, names: Names) -> Array:
    normal = normalised(shaped(arrays, "in", names, "M", "N"), float(names["epsilon"]))
    return normal * arrays["weight"] + arrays["bias"]


def normalised(x: Array, epsilon: float) -> Array:
    """With mean 0 and variance 1 along the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + epsilon))


def sum_reduction(arrays: Arrays, names: Names) -> Array:
    return np.asarray(shaped(arrays, "in", names, "B", "M", "N").sum(axis=1))


def max_reduction(arrays: Arrays, names: Names) -> Array:
    # As fmax does, and a GPU's maximum with it: a number rather than a NaN.
    return np.asarray(np.fmax.reduce(shaped(arrays, "in", names, "M", "N"), axis=1))


def cumsum(arrays: Arrays, names: Names) -> Array:
    return np.asarray(shaped(arrays, "in", names, "M", "N").cumsum(axis=1))


def max_pool2d(arrays: Arrays, names: Names) -> Array:
    x = shaped(arrays, "in", names, "P", "H", "W")
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    return np.asarray(np.fmax.reduce(
        sliding_window_view(padded, (4, 4), axis=(1, 2)), axis=(3, 4)))


def avg_pool2d(arrays: Arrays, names: Names) -> Array:
    x = shaped(arrays, "in", names, "P", "H", "W")
    side = int(names["S"])
    windows = sliding_window_view(x, (side, side), axis=(1, 2))[:, ::side, ::side]
    return np.asarray(windows.mean(axis=(3, 4)))
