"""The cycle model alone, on traces of production kernels, one thread.

Target: 5 M simulated wave-instructions a second; ``extra_info`` has what was reached. Run with
``pytest --benchmark-only --benchmark-enable tests/benchmarks/test_timing_speed.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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

    from asmevo.dispatch.kernel import Kernel

CONF = Path(__file__).parents[2] / "conf"


@pytest.mark.parametrize(("name", "shape"), [
    ("aiter_layer_norm", {"M": 2432}),
    ("aiter_topksoftmax", {"T": 60000, "S": 8}),
    ("aiter_gemm_a8w8", {"M": 2048, "N": 2048, "K": 4096}),
    ("aiter_fmha_fwd_bf16", {"B": 2, "S": 1024, "T": 1024, "H": 16, "R": 2}),
    ("aiter_fmoe", {"T": 512, "D": 1024, "I": 512, "E": 8, "K": 2}),
])
def test_speed_of_the_cycle_model(benchmark: BenchmarkFixture, name: str,
                                  shape: dict[str, int]) -> None:
    register()
    values = ",".join(f"{key}:{value}" for key, value in shape.items())
    with initialize_config_dir(str(CONF), version_base=None):
        config = compose("config", overrides=[
            f"kernel={name}", f"kernel.shapes=[{{{values}}}]", "kernel.held_out_shapes=[]"])
    kernel: Kernel = instantiate(config.kernel, _convert_="all")
    device = instantiate(config.device, _convert_="all")
    assert isinstance(device, Emulator)
    code_object = CodeObject.parse(kernel.source.read())
    target = code_object.kernel(kernel.symbol)
    dispatch, = DeclaredOracle(families=("normal",)).dispatches(
        kernel, target.symbol, target.metadata)
    loaded = device.load(code_object, target.symbol)
    sample = device.timing.samples(dispatch.grid, seed=0)[0]
    trace = loaded.trace(dispatch, np.asarray(sample.workgroups, np.uint32))
    result = benchmark(loaded.timed, device.timing, trace, dispatch, sample)
    instructions = int(result.issued.sum())
    assert instructions > 20_000
    if benchmark.stats is not None:
        benchmark.extra_info["million_per_second"] = round(
            instructions / benchmark.stats.stats.min / 1e6, 1)
