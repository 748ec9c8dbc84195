"""What checking costs: a sanitized launch against a plain one on the same thread.

Target: at most five times as long. ``extra_info`` has the ratio of the fastest rounds. Run with
``pytest --benchmark-only --benchmark-enable tests/benchmarks/test_sanitizer_speed.py``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.codeobject.container import CodeObject
from asmevo.config import register
from asmevo.device.emulator.emulator import EmulatedKernel, Emulator
from asmevo.dispatch.declared import DeclaredOracle

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from asmevo.dispatch.dispatch import Dispatch
    from asmevo.dispatch.kernel import Kernel

CONF = Path(__file__).parents[2] / "conf"


def launch(name: str, shape: dict[str, int]) -> tuple[EmulatedKernel, Dispatch]:
    """A kernel of ``conf/kernel`` and one dispatch of it."""
    register()
    values = ",".join(f"{key}:{value}" for key, value in shape.items())
    with initialize_config_dir(str(CONF), version_base=None):
        config = compose("config", overrides=[
            f"kernel={name}", f"kernel.shapes=[{{{values}}}]", "kernel.held_out_shapes=[]"])
    kernel: Kernel = instantiate(config.kernel, _convert_="all")
    code_object = CodeObject.parse(kernel.source.read())
    target = code_object.kernel(kernel.symbol)
    dispatch, = DeclaredOracle(families=("normal",)).dispatches(
        kernel, target.symbol, target.metadata)
    return Emulator("benchmark", None).load(code_object, target.symbol), dispatch


@pytest.mark.parametrize(("name", "shape"), [
    ("aiter_layer_norm", {"M": 512}),
    ("aiter_topksoftmax", {"T": 4000, "S": 8}),
    ("aiter_i8gemm", {"M": 512, "N": 512, "K": 4096}),
    ("aiter_gemm_a8w8", {"M": 512, "N": 512, "K": 4096}),
])
def test_cost_of_checking(benchmark: BenchmarkFixture, name: str, shape: dict[str, int]) -> None:
    kernel, dispatch = launch(name, shape)
    result = benchmark(kernel.sanitize, dispatch)
    assert result.instructions > 100_000
    stats = benchmark.stats
    if stats is not None:
        plain = []
        for _ in range(5):
            started = time.perf_counter()
            kernel.run(dispatch)
            plain.append(time.perf_counter() - started)
        benchmark.extra_info["ratio"] = round(stats.stats.min / min(plain), 2)
        benchmark.extra_info["million_per_second"] = round(
            result.instructions / stats.stats.min / 1e6, 1)
