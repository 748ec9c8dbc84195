"""Emulator throughput on production kernels whose work is matrix operations, one thread.

Target: 27 million wave-instructions/s. ``extra_info`` has the figure of the fastest round, copying
the buffers in and out included, and how many of the issued instructions are matrix operations. Run
with ``pytest --benchmark-only --benchmark-enable tests/benchmarks/test_matrix_speed.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.codeobject.container import CodeObject
from asmevo.config import register
from asmevo.device.emulator.emulator import Emulator
from asmevo.dispatch.declared import DeclaredOracle

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

CONF = Path(__file__).parents[2] / "conf"


ATTENTION = {"B": 1, "S": 512, "T": 512, "H": 2, "R": 1}
EXPERTS = {"T": 256, "D": 1024, "I": 512, "E": 2, "K": 1}


@pytest.mark.parametrize(("name", "shape", "sums"), [
    ("aiter_i8gemm", {"M": 128, "N": 256, "K": 4096}, "sequential"),
    ("aiter_gemm_a8w8", {"M": 128, "N": 256, "K": 4096}, "sequential"),
    ("aiter_fmha_fwd_bf16", ATTENTION, "sequential"),
    ("aiter_fmha_fwd_bf16", ATTENTION, "cdna3"),
    ("aiter_fmoe", EXPERTS, "sequential"),
    ("aiter_fmoe", EXPERTS, "cdna3"),
], ids=["i8gemm", "gemm_a8w8", "fmha_fwd_bf16", "fmha_fwd_bf16-cdna3", "fmoe", "fmoe-cdna3"])
def test_wave_instructions_per_second(benchmark: BenchmarkFixture, name: str,
                                      shape: dict[str, int], sums: str) -> None:
    register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config: Any = compose("config", overrides=[f"kernel={name}"])
    config.kernel.shapes, config.kernel.held_out_shapes = [shape], []
    kernel = instantiate(config.kernel)
    code_object = CodeObject.parse(kernel.source.read())
    target = code_object.kernel(kernel.symbol)
    dispatch = DeclaredOracle(families=("normal",)).dispatches(
        kernel, target.symbol, target.metadata)[0]
    device = Emulator("test", None, matrix_sums=sums)
    loaded = device.load(code_object, target.symbol)
    result = benchmark(loaded.run, dispatch)
    assert result.instructions > 10_000
    stats = benchmark.stats
    if stats is not None:
        benchmark.extra_info["wave_instructions"] = result.instructions
        benchmark.extra_info["matrix_share"] = round(_matrix_share(loaded, dispatch), 3)
        benchmark.extra_info["million_per_second"] = round(
            result.instructions / stats.stats.min / 1e6, 1)


def _matrix_share(loaded: Any, dispatch: Any) -> float:
    """Of the instructions that the first workgroup issues."""
    counts = loaded.trace(dispatch, np.zeros(1, np.uint32)).issue_counts(len(loaded.program))
    matrix = [i.op.startswith(("v_mfma", "v_smfmac")) for i in loaded.program.instructions]
    return float(counts[matrix].sum() / counts.sum())
