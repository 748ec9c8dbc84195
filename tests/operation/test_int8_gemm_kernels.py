"""AITER's int8 matrix products and quantising layer norm on the emulator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.__main__ import config_folder
from asmevo.codeobject.container import CodeObject
from asmevo.config import register
from asmevo.dispatch.inferred.probing import ProbeFault
from asmevo.operation.int8_gemm import ScaledInt8Product
from asmevo.operation.operation import Array
from asmevo.report.result import Result, Status
from asmevo.task.probe import probe
from tests.operation.conftest import accuracies

RunKernel = Callable[..., Result]

TAIL = "{M: 130, N: 256, K: 384}"
PADDED = "{M: 130, N: 128, K: 512, pad_a: 128}"
ONE = "{M: 1, N: 128, K: 1024}"


@pytest.mark.parametrize("seed", [0, 1])
def test_layer_norm_with_quantisation(run_kernel: RunKernel, seed: int) -> None:
    result = run_kernel("aiter_layer_norm_qnt", ("{M: 14}",), f"oracle.seed={seed}",
                        "task.repeats=2")
    assert result.status is Status.AGREES, result.error
    assert accuracies(result).keys() == {"out", "residual_out", "yscale"}


def test_the_maximum_of_the_object_leaves_out_columns(run_kernel: RunKernel) -> None:
    result = run_kernel("aiter_layer_norm_qnt", ("{M: 14}",), "+kernel.operation.ignored=0")
    assert result.status is Status.DISAGREES
    assert accuracies(result)["yscale"]["max_rel"] > 0.01


@pytest.mark.parametrize(("name", "shapes"), [
    ("aiter_i8gemm", (TAIL, ONE, PADDED)), ("aiter_i8gemm_192x128", (TAIL, ONE, PADDED)),
    ("aiter_gemm_a8w8", (TAIL, ONE, PADDED)),
    ("aiter_i8gemm_splitk", ("{M: 130, N: 128, K: 896}",)),
    ("aiter_gemm_a8w8_splitk", ("{M: 130, N: 128, K: 1024}",)),
])
def test_products(run_kernel: RunKernel, name: str, shapes: tuple[str, ...]) -> None:
    result = run_kernel(name, shapes, "task.repeats=3")
    assert result.status is Status.AGREES, result.error
    assert accuracies(result)["out"]["cosine"] > 0.99999


@pytest.mark.parametrize("name", ["aiter_i8gemm", "aiter_gemm_a8w8"])
@pytest.mark.parametrize("held_out", [False, True])
def test_exchanged_strides_show(name: str, held_out: bool) -> None:
    """A candidate that takes one stride for the other fails on a dispatch of each kind."""
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        config = compose("config", overrides=[f"kernel={name}"])
    kernel, device, oracle = (instantiate(part) for part in (config.kernel, config.device,
                                                             config.oracle))
    code_object = CodeObject.parse(kernel.source.read())
    symbol = code_object.kernels[0].symbol
    launch = probe(device.load(code_object, symbol))
    changed = []
    for dispatch in oracle.dispatches(kernel, symbol, code_object.kernel(symbol).metadata):
        if dispatch.family != "normal" or dispatch.held_out != held_out:
            continue
        kernarg = bytearray(dispatch.kernarg)
        kernarg[0x90:0x94], kernarg[0xa0:0xa4] = kernarg[0xa0:0xa4], kernarg[0x90:0x94]
        try:
            exchanged = launch(replace(dispatch, kernarg=bytes(kernarg)), 0, 10**9)[0][0]
        except ProbeFault:
            exchanged = b""
        changed.append(exchanged != launch(dispatch, 0, 10**9)[0][0])
    assert any(changed)
    assert not all(changed)


def test_wide_tiles_need_time(run_kernel: RunKernel) -> None:
    """The loop leaves loads to LDS outstanding when the epilogue reuses their place."""
    result = run_kernel("aiter_i8gemm_192x128", ("{M: 300, N: 128, K: 384}",),
                        "kernel.launch.relies_on_time=false")
    assert result.status is Status.DISAGREES


def test_split_products_need_resident_workgroups(run_kernel: RunKernel) -> None:
    """Alone, one workgroup clears what another has added."""
    result = run_kernel("aiter_i8gemm_splitk", ("{M: 128, N: 128, K: 1024}",),
                        "kernel.constants.S=4", "kernel.accuracy.out.max_rel=10",
                        "kernel.accuracy.out.unequal=1")
    assert accuracies(result)["out"]["cosine"] > 0.99999


def nearest_bf16(value: float) -> float:
    """Ties away from zero."""
    fraction, exponent = math.frexp(value)
    return math.ldexp(math.copysign(math.floor(abs(fraction) * 256 + 0.5), value), exponent - 8)


@pytest.mark.parametrize(("splits", "starts"), [(1, [0]), (2, [0, 256]), (3, [0, 128, 256])])
def test_scaled_product(splits: int, starts: list[int]) -> None:
    rng = np.random.default_rng(splits)
    rows, columns, depth = 3, 32, 384
    arrays: dict[str, Array] = {
        "a": rng.integers(-128, 128, rows * depth).astype(np.int8),
        "b": rng.integers(-128, 128, columns * depth).astype(np.int8),
        "row_scale": np.full(rows, 0.5, np.float32),
        "column_scale": np.full(columns, 2.0**-7, np.float32),
        "bias": rng.integers(-9, 9, columns).astype(np.float32),
    }
    names = {"M": rows, "N": columns, "K": depth, "S": splits}
    found = ScaledInt8Product().reference(arrays, names)["out"].reshape(rows, columns)
    a = arrays["a"].reshape(rows, depth)
    b = np.empty((columns, depth), np.int8)
    for at, (start, half, column, byte) in enumerate(np.ndindex(depth // 32, 2, 32, 16)):
        b[column, 32 * start + 16 * half + byte] = arrays["b"][at]
    for row in range(rows):
        for column in range(columns):
            total = 0.0
            for start, stop in zip(starts, [*starts[1:], depth], strict=True):
                part = sum(int(a[row, k]) * int(b[column, k]) for k in range(start, stop)) / 256
                part += float(arrays["bias"][column]) if start == 0 else 0.0
                total += part if splits == 1 else nearest_bf16(part)
            assert found[row, column] == total
