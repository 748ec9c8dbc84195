"""Pulling a signed replacement: the import, the whole process, and one call.

Target: importing the Python API <= 150 ms. Run with ``pytest -o addopts=--import-mode=importlib
--benchmark-only tests/benchmarks/test_pull_speed.py``.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.registry import pull
from asmevo.registry.registry import Registry
from asmevo.registry.signing.keys import generate
from tests.registry.conftest import Scene, make_dispatch

REPLACEMENTS = 30  # of one original, as a few searches leave them


@dataclass(frozen=True)
class Release:
    path: Path
    original: Path
    trust: Path


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("release")
    source = Path(str(distribution("amd-aiter").locate_file(
        "aiter_meta/hsa/gfx942/layer_norm.co")))
    original = CodeObject.parse(source.read_bytes())
    generate(folder / "key")
    registry = Registry(folder / "registry", signing_key=folder / "key")
    dispatch = make_dispatch(original.kernels[0].symbol)
    registry.record_original(original, "amd-aiter")
    registry.record_dispatches([dispatch])
    run_id = registry.start_run(task="optimize", config="{}", seed=1, toolchain={},
                                device="device-measured", device_source="measured")

    scene = Scene(registry, original, original.kernels[0].symbol, dispatch, run_id)
    for number in range(1, REPLACEMENTS + 1):
        scene.commit(f"c{number}", number=number, speedup=1 + number / 100)
    registry.close()
    return Release(registry.path, source, folder / "key.pub")


def process(*arguments: object) -> None:
    subprocess.run([sys.executable, *map(str, arguments)], check=True, capture_output=True)


def test_python_alone(benchmark: Any) -> None:
    """What every process takes; to be subtracted from the next two."""
    benchmark.pedantic(lambda: process("-c", "pass"), rounds=20, warmup_rounds=2)


def test_importing_the_api(benchmark: Any) -> None:
    benchmark.pedantic(lambda: process("-c", "from asmevo.registry import pull"), rounds=20,
                       warmup_rounds=2)


def test_the_command(benchmark: Any, release: Release, tmp_path: Path) -> None:
    benchmark.pedantic(lambda: process(
        "-m", "asmevo.registry", "pull", "--registry", release.path, "--original",
        release.original, "--trust", release.trust, "-o", tmp_path / "new.co", "--force"),
        rounds=10, warmup_rounds=1)


def test_one_call(benchmark: Any, release: Release) -> None:
    registry = Registry(release.path)
    found = benchmark(lambda: pull(registry, original=release.original, trust=release.trust))
    assert len(found.signers) == 1
