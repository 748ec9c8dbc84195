"""How fast `verify` goes through a registry (target: 200 MB/s of contents on two cores).

    pytest -o addopts=--import-mode=importlib --benchmark-only tests/benchmarks/test_verify_speed.py

The mix is that of searches: many code objects of one original with their texts, memory of
dispatches that is random (tensors) or like text (indices, zeros), and a record of each.
"""

from __future__ import annotations

import random
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.registry.audit.verify import verify
from asmevo.registry.records import CandidateRecord, CandidateStatus
from asmevo.registry.registry import Registry
from tests.registry.conftest import variant

OBJECTS = 300
DISPATCHES = 6
REGION = 16 << 20


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """About 400 MB of contents: 300 objects of 37 KiB with texts of 310 KB, six dispatches."""
    registry = Registry(tmp_path_factory.mktemp("speed") / "registry")
    path = distribution("amd-aiter").locate_file(
        "aiter_meta/hsa/gfx942/fmoe_fp8_blockscale_g1u1_subGU_256.co")
    original = CodeObject.parse(Path(str(path)).read_bytes())
    kernel = original.kernels[0].symbol
    chance = random.Random(1)
    lines = [f"\tv_add_u32_e32 v{chance.randrange(256)}, s{chance.randrange(100)}, "
             f"v{chance.randrange(256)}\n" for _ in range(9000)]
    registry.record_original(original, "amd-aiter")
    registry.record_dispatches([_dispatch(kernel, chance) for _ in range(DISPATCHES)])
    run_id = registry.start_run(task="optimize", config="", seed=0, toolchain={}, device="d",
                                device_source="modelled")
    for number in range(OBJECTS):
        lines[chance.randrange(len(lines))] = f"\ts_nop {number}\n"
        registry.record_candidate(CandidateRecord(
            id=f"c{number}", run_id=run_id, original_sha256=original.sha256, kernel=kernel,
            edits=(), rule="r", direction="d", rationale="", status=CandidateStatus.REJECTED),
            assembly="".join(lines), built=CodeObject.parse(variant(original.data, number)))
    return registry


def _dispatch(kernel: str, chance: random.Random) -> Dispatch:
    indices = b"".join(chance.randrange(4096).to_bytes(4, "little") for _ in range(1 << 14))
    contents = (chance.randbytes(REGION), chance.randbytes(REGION), bytes(REGION),
                indices * (REGION // len(indices)))
    regions = tuple(
        Region(f"r{n}", 0x10000000 * (n + 1), data, Role.INPUT, ElementType.U8)
        for n, data in enumerate(contents))
    return Dispatch("m", kernel, (0x10000000).to_bytes(8, "little"), (1, 1, 1), (64, 1, 1), regions,
                    (Pointer(0, 0),))


@pytest.mark.parametrize("threads", [1, 2])
def test_verify(benchmark: Any, registry: Registry, threads: int) -> None:
    audit = benchmark.pedantic(lambda: verify(registry, threads=threads), rounds=3, iterations=1)
    assert audit.findings == []
    assert audit.size > 300e6
    benchmark.extra_info["MB"] = round(audit.size / 1e6)
    if benchmark.stats is not None:
        benchmark.extra_info["MB_per_s"] = round(audit.size / 1e6 / benchmark.stats.stats.median)
