"""Level 2 of KernelBench: fused operators.

Inputs are flat arrays in float64; shape variables are those of conf/kernel/kb_*.yaml.
"""

from __future__ import annotations

import math

import numpy as np

from asmevo.operation.activation import silu
from asmevo.operation.level1 import conv2d, normalised, shaped, softmax_of_rows
from asmevo.operation.operation import Array, Arrays, Names

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _product(arrays: Arrays, names: Names) -> Array:
    x, w = shaped(arrays, "x", names, "M", "K"), shaped(arrays, "w", names, "N", "K")
    return np.asarray(x @ w.T)


def _linear(arrays: Arrays, names: Names) -> Array:
    return np.asarray(_product(arrays, names) + arrays["bias"])


def _gelu(x: Array) -> Array:
    return np.asarray(x / 2 * (1 + _erf(x / math.sqrt(2))))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _mish(x: Array) -> Array:
    return np.asarray(x * np.tanh(np.logaddexp(0, x)))


def _by_channel(array: Array) -> Array:
    return array[:, None, None]


def _group_norm(x: Array, arrays: Arrays, names: Names, group: int) -> Array:
    normal = normalised(x.reshape(len(x), -1, group), float(names["epsilon"]))
    return np.asarray(normal.reshape(x.shape) * arrays["gamma"] + arrays["beta"])


def matmul_swish_sum_groupnorm(arrays: Arrays, names: Names) -> Array:
    return _group_norm(silu(_product(arrays, names)) + arrays["bias"], arrays, names, 64)


def gemm_groupnorm_swish(arrays: Arrays, names: Names) -> Array:
    normal = _group_norm(_linear(arrays, names), arrays, names, 32)
    return silu(silu(normal) * arrays["factor"])


def gemm_scale_hardtanh_gelu(arrays: Arrays, names: Names) -> Array:
    scaled = _linear(arrays, names) * names["scale"]
    return _gelu(np.clip(scaled, names["low"], names["high"]))


def gemm_multiply_leakyrelu(arrays: Arrays, names: Names) -> Array:
    y = _linear(arrays, names) * names["factor"]
    return np.where(y >= 0, y, y * names["slope"])


def matmul_gelu_softmax(arrays: Arrays, names: Names) -> Array:
    return softmax_of_rows(_gelu(_linear(arrays, names)))


def matmul_scale_clamp_logsumexp_mish(arrays: Arrays, names: Names) -> Array:
    y = np.clip(2 * names["scale"] * _linear(arrays, names), names["low"], names["high"])
    total = np.logaddexp.reduce(y, axis=1)
    return np.asarray(total * _mish(total))


def matmul_maxpool_sum_scale(arrays: Arrays, names: Names) -> Array:
    y = _linear(arrays, names)
    return np.asarray(np.fmax(y[:, ::2], y[:, 1::2]).sum(axis=1) * names["scale"])


def gemm_bias_relu(arrays: Arrays, names: Names) -> Array:
    return np.fmax(_linear(arrays, names), 0)


def matmul_divide_gelu(arrays: Arrays, names: Names) -> Array:
    return _gelu(_linear(arrays, names) / names["divisor"])


def matmul_subtract_multiply_relu(arrays: Arrays, names: Names) -> Array:
    y = (_linear(arrays, names) - names["less"]) * names["factor"]
    return np.fmax(y, 0)


def gemm_sigmoid_residual(arrays: Arrays, names: Names) -> Array:
    y = _linear(arrays, names)
    return np.asarray(_sigmoid(y) * names["scale"] + y)


def conv2d_relu_bias(arrays: Arrays, names: Names) -> Array:
    y = conv2d(arrays, names) + _by_channel(arrays["conv_bias"])
    return np.asarray(np.fmax(y, 0) + _by_channel(arrays["bias"]))


def conv2d_batchnorm_scale(arrays: Arrays, names: Names) -> Array:
    centred = conv2d(arrays, names) - _by_channel(arrays["mean"])
    normal = centred / _by_channel(np.sqrt(arrays["variance"] + names["epsilon"]))
    gamma, beta = _by_channel(arrays["gamma"]), _by_channel(arrays["beta"])
    return np.asarray((normal * gamma + beta) * names["scale"])


def positive_variance(arrays: Arrays, names: Names) -> Arrays:
    """A variance that is one."""
    return {"variance": np.abs(arrays["variance"])}


def conv2d_min_tanh(arrays: Arrays, names: Names) -> Array:
    y = conv2d(arrays, names) + _by_channel(arrays["bias"])
    return np.asarray(np.tanh(np.tanh(np.fmin.reduce(y, axis=1))))


def conv2d_mish(arrays: Arrays, names: Names) -> Array:
    return _mish(_mish(conv2d(arrays, names) + _by_channel(arrays["bias"])))
