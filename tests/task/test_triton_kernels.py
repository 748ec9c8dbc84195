"""Triton kernels of SGLang and AITER, compiled here for gfx942, against NumPy.

The first run downloads the pinned wheel; without a network these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from asmevo.compiler.errors import CompileError
from asmevo.compiler.wheel import PINNED, fetch
from asmevo.report.result import Result, Status

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = {"awq_gemm": "sglang", "fused_moe": "sglang", "fused_moe_lora": "sglang",
           "gemm_a8w8_blockscale": "sglang", "attention": "amd-aiter"}


@pytest.fixture
def wheel(name: str) -> Path:
    try:
        return fetch(PINNED[KERNELS[name]])
    except CompileError as error:
        pytest.skip(f"needs the wheel that the kernel comes from: {error}")


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(wheel: Path, run: Callable[..., Result], name: str) -> None:
    compiled = run("task=compile", f"kernel=triton_{name}")
    assert compiled.status is Status.COMPILED
    result = run("task=run", f"kernel=triton_{name}", "task.repeats=2")
    assert result.status is Status.AGREES, result.error
    assert result.details is not None
    for launch in result.details["launches"]:
        buffer = next(b for b in launch["buffers"] if b["role"] != "input")
        assert buffer["within"] is True
        assert buffer["accuracy"]["cosine"] > 0.99999
        assert buffer["zero"] < buffer["count"] / 2 or name == "fused_moe_lora"
        assert buffer["zero"] < buffer["count"]
