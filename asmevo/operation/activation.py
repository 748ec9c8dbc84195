"""Activation functions of gated and plain feed-forward layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from asmevo.operation.operation import Array


def silu(x: Array) -> Array:
    """``x / (1 + exp(-x))``."""
    return np.asarray(x / (1 + np.exp(-x)))


def gelu_tanh(x: Array) -> Array:
    """``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))``."""
    return np.asarray(x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {"silu": silu, "gelu_tanh": gelu_tanh}
