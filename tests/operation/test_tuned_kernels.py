"""Kernels of AITER's tuning tables on the emulator, against the reference that each YAML names."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from asmevo.report.result import Result, Status
from tests.operation.conftest import accuracies

RunKernel = Callable[..., Result]

public = pytest.mark.skipif(
    not os.environ.get("AITER_HSA_DIR"),
    reason="needs objects of the public repository ROCm/aiter: set AITER_HSA_DIR to its folder hsa")

EXPERTS = "{T: 37, D: 1024, I: 512, E: 4, K: 2}"
PARTS = "{T: 37, D: 1024, P: 2, E: 4, K: 2}"
PRODUCT = ("{M: 130, N: 256, K: 384}", "{M: 1, N: 256, K: 1024}")
SHARED = ("{M: 130, N: 128, K: 1024}",)


@pytest.mark.parametrize(("name", "shape", "overrides"), [
    ("aiter_fmoe_fp8", PARTS, ("kernel.constants.N=192",)),
    ("aiter_fmoe_blockscale", EXPERTS, ()),
    ("aiter_fmoe_blockscale", EXPERTS, ("kernel.choices.variant=novs_silu_1tg",)),
    ("aiter_fmoe_blockscale_ps", EXPERTS, ()),
    ("aiter_fmoe_stage1_doweight", PARTS, ()),
    ("aiter_fmoe_stage1_blockscale", PARTS, ()),
    ("aiter_fmoe_stage1_int8", PARTS, ()),
    ("aiter_fmha_bwd_a16", "{B: 1, S: 256, T: 256, H: 2, R: 2}", ()),
])
def test_objects_of_the_wheel(
    run_kernel: RunKernel, name: str, shape: str, overrides: tuple[str, ...],
) -> None:
    result = run_kernel(name, (shape,), *overrides, "task.repeats=2")
    assert result.status is Status.AGREES, result.error


@pytest.mark.parametrize(("name", "overrides"), [
    ("aiter_fmoe_stage1_doweight", ("kernel.operation.weighted=false",)),
    ("aiter_fmoe_stage1_blockscale", ("kernel.operation.hidden_block=null",)),
    ("aiter_fmoe_blockscale_ps", ("kernel.operation.activation=gelu_tanh",)),
])
def test_another_operation_is_told_apart(
    run_kernel: RunKernel, name: str, overrides: tuple[str, ...],
) -> None:
    shape = EXPERTS if name.endswith("_ps") else PARTS
    assert run_kernel(name, (shape,), *overrides).status is Status.DISAGREES


@public
@pytest.mark.parametrize(("name", "shapes", "overrides"), [
    ("aiter_fp8gemm_blockscale", PRODUCT, ("kernel.constants.R=48",)),
    ("aiter_fp8gemm_blockscale_splitk", SHARED, ("kernel.constants.R=96",)),
    ("aiter_i8gemm_public", PRODUCT, ("kernel.constants.R=16",)),
    ("aiter_i8gemm_public", PRODUCT, ("kernel.constants.R=112", "kernel.constants.C=256")),
    ("aiter_i8gemm_public_splitk", SHARED, ("kernel.constants.R=80",)),
    ("aiter_bf16gemm", SHARED, ("kernel.constants.R=96",)),
    ("aiter_fmoe_blockscale", (EXPERTS,), ("kernel.constants.R=64",)),
    ("aiter_fmoe_blockscale", (EXPERTS,), ("kernel.constants.N=128",)),
    ("aiter_fmoe_blockscale_ps", (EXPERTS,),
     ("kernel.constants.R=64", "kernel.choices.variant=vs_silu_1tg_psx")),
])
def test_objects_of_the_repository(
    run_kernel: RunKernel, name: str, shapes: tuple[str, ...], overrides: tuple[str, ...],
) -> None:
    result = run_kernel(name, shapes, *overrides, "task.repeats=2")
    assert result.status is Status.AGREES, result.error


@public
def test_products_are_cut_to_bf16(run_kernel: RunKernel) -> None:
    """Rounded to nearest, half of the results would be another step."""
    result = run_kernel("aiter_i8gemm_public", PRODUCT, "kernel.operation.rounding=rtna")
    assert result.status is Status.DISAGREES
    assert 0.004 < accuracies(result)["out"]["max_rel"] < 2.0**-7


@public
def test_wide_tiles_of_the_repository_need_time(run_kernel: RunKernel) -> None:
    result = run_kernel("aiter_i8gemm_public", PRODUCT, "kernel.constants.R=112",
                        "kernel.constants.C=256", "kernel.launch.relies_on_time=false")
    assert result.status is Status.DISAGREES
