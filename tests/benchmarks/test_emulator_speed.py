"""Emulator throughput on both production kernels, on one and two threads, and how long it loads.

Targets: 60 million wave-instructions/s without MFMA on one thread, 1.8 times that on two, and 50 ms
to load a kernel of some 4,500 instructions. ``extra_info`` has the figure of the fastest round,
copying the buffers in and out included. Run with ``pytest --benchmark-only
--benchmark-enable tests/benchmarks/test_emulator_speed.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.source import InstalledFile
from asmevo.device.emulator.emulator import Emulator
from asmevo.dispatch.declared import DeclaredOracle

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from asmevo.dispatch.kernel import Kernel

CONF = Path(__file__).parents[2] / "conf"


def declared(name: str, constants: dict[str, int], shape: dict[str, int]) -> Kernel:
    """A kernel of ``conf/kernel`` with one shape of its own."""
    config: Any = OmegaConf.load(CONF / "kernel" / f"{name}.yaml")
    del config["defaults"]
    config["_target_"] = "asmevo.dispatch.kernel.declare"
    config["constants"].update(constants)
    config["shapes"], config["held_out_shapes"] = [shape], []
    kernel: Kernel = instantiate(config)
    return kernel


def emulator() -> Emulator:
    device: Emulator = instantiate(
        {key: value for key, value in OmegaConf.load(CONF / "device" / "emulator.yaml").items()
         if key != "defaults"})
    return device


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("name", "constants", "shape"), [
    ("aiter_layer_norm", {}, {"M": 512}),
    ("aiter_topksoftmax", {"R": 4, "E": 128, "K": 8}, {"T": 4000, "S": 8}),
    ("aiter_topksoftmax", {"R": 12, "E": 256, "K": 6}, {"T": 4800, "S": 6}),
], ids=["layer_norm", "topksoftmax_4x128x8", "topksoftmax_12x256x6"])
def test_wave_instructions_per_second(benchmark: BenchmarkFixture, name: str,
                                      constants: dict[str, int], shape: dict[str, int],
                                      threads: int) -> None:
    kernel = declared(name, constants, shape)
    code_object = CodeObject.parse(kernel.source.read())
    target = code_object.kernel(kernel.symbol)
    dispatch = DeclaredOracle(families=("normal",)).dispatches(
        kernel, target.symbol, target.metadata)[0]
    device = emulator()
    device.threads = threads
    loaded = device.load(code_object, target.symbol)
    result = benchmark(loaded.run, dispatch)
    assert result.instructions > 100_000
    stats = benchmark.stats
    if stats is not None:
        benchmark.extra_info["wave_instructions"] = result.instructions
        benchmark.extra_info["million_per_second"] = round(
            result.instructions / stats.stats.min / 1e6, 1)


def test_start_up(benchmark: BenchmarkFixture) -> None:
    """From a code object to a loaded kernel; caches keep what several rounds have in common."""
    path = "aiter_meta/hsa/gfx942/fmha_v3_fwd/MI300/fwd_hd128_bf16_causal_rtne.co"
    code_object = CodeObject.parse(InstalledFile("amd-aiter", path).read())
    loaded = benchmark(emulator().load, code_object, code_object.kernels[0].symbol)
    benchmark.extra_info["instructions"] = len(loaded.program)
    assert len(loaded.program) > 2_000
