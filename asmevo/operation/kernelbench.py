"""Operators of the KernelBench suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from asmevo.operation import level1, level2
from asmevo.operation.declared import OperationError
from asmevo.operation.operation import Array, Arrays, Names, Operation

# Of the inputs in float64, flat, and the names of the dispatch
Function = Callable[[Arrays, Names], Array]

_FUNCTIONS: Mapping[str, Function] = {
    **{name: getattr(level1, name) for name in (
        "avg_pool2d", "batched_matmul", "conv2d", "cumsum", "depthwise_conv2d", "gelu",
        "layer_norm", "max_pool2d", "max_reduction", "rms_norm", "softmax", "square_matmul",
        "sum_reduction", "tall_matmul", "triu_matmul")},
    **{name: getattr(level2, name) for name in (
        "conv2d_batchnorm_scale", "conv2d_min_tanh", "conv2d_mish", "conv2d_relu_bias",
        "gemm_bias_relu", "gemm_groupnorm_swish", "gemm_multiply_leakyrelu",
        "gemm_scale_hardtanh_gelu", "gemm_sigmoid_residual", "matmul_divide_gelu",
        "matmul_gelu_softmax", "matmul_maxpool_sum_scale", "matmul_scale_clamp_logsumexp_mish",
        "matmul_subtract_multiply_relu", "matmul_swish_sum_groupnorm")},
}
# What an operator's inputs must be beside random
_PREPARED: Mapping[str, Callable[[Arrays, Names], Arrays]] = {
    "conv2d_batchnorm_scale": level2.positive_variance,
    "triu_matmul": level1.upper_triangles,
}


@dataclass(frozen=True)
class Operator(Operation):
    """What the operator ``name`` makes of the inputs, in the buffer ``out``."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in _FUNCTIONS:
            raise OperationError(f"there is no operator '{self.name}' (there are: "
                                 f"{', '.join(sorted(_FUNCTIONS))})")

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        prepared = _PREPARED.get(self.name)
        return {} if prepared is None else prepared(arrays, names)

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        wide = {name: array.astype(np.float64) for name, array in arrays.items()}
        # Boundary inputs hold infinities and NaNs on purpose.
        with np.errstate(all="ignore"):
            return {"out": np.asarray(_FUNCTIONS[self.name](wide, names)).reshape(-1)}
