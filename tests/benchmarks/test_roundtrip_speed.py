"""Recovery and its gate on an AITER object of the corpus's median length."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.rebuild import rebuild
from asmevo.codeobject.recover import recover
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.toolchain import ZigToolchain

# 4,411 instructions; the corpus's median is 4,569.
MEDIAN = "aiter_meta/hsa/gfx942/fmoe_fp8_blockscale_g1u1_subGU_256.co"


@pytest.fixture(scope="module")
def median() -> CodeObject:
    return CodeObject.parse(InstalledFile("amd-aiter", MEDIAN).read())


def test_recover_and_gate(benchmark: BenchmarkFixture, median: CodeObject) -> None:
    """Target: 150 ms."""
    toolchain = ZigToolchain()
    report = benchmark(lambda: round_trip(CodeObject.parse(median.data), toolchain))
    assert report.identical
    benchmark.extra_info["instructions"] = report.instruction_count


def test_rebuild_after_an_edit_of_twenty_lines(
    benchmark: BenchmarkFixture, median: CodeObject
) -> None:
    toolchain = ZigToolchain()
    edit = Edit(median.kernel().symbol, 100, 100, ("s_nop 0",) * 20, "benchmark")
    assembly = recover(median).apply([edit])
    rebuilt = benchmark(lambda: rebuild(median, assembly, toolchain))
    assert rebuilt.sha256 != median.sha256
