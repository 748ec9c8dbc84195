"""That a microbenchmark measures what it says, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asmevo.codeobject.errors import AssemblerError
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.validation.bench import Bench, BenchError, chain
from asmevo.validation.microbenchmark import Chase, Microbenchmark, Quantity
from asmevo.validation.microbenchmarks import microbenchmarks
from asmevo.validation.row import Basis, Confidence
from tests.validation.conftest import Measure, emulator, published


def test_every_figure_is_published_once_a_machine() -> None:
    seen = {(b.name, b.compute_units) for b in microbenchmarks()}
    assert len(seen) == len(microbenchmarks())
    assert all(b.expected > 0 and b.source for b in microbenchmarks())


def test_all_of_them_assemble_and_run() -> None:
    bench = Bench(emulator(), ZigToolchain(), microbenchmarks())
    rows = list(bench.rows())
    machines = [b.compute_units for b in microbenchmarks()]
    assert len(rows) == machines.count(None) + machines.count(304)
    assert all(row.modelled is not None and row.modelled > 0 for row in rows)
    given = [row for row in rows if row.basis is Basis.PARAMETER
             and row.confidence is not Confidence.LOW]
    assert len(given) > 40
    assert [row.name for row in given if not row.within] == []


@pytest.mark.parametrize(("name", "change"), [
    ("v_add_f32", "timing.parameters.issue.valu=8"),
    ("v_exp_f32", "timing.parameters.issue.transcendental=20"),
    ("8-byte VALU at PC % 8 = 4", "timing.parameters.issue.misaligned_fetch=2"),
    ("v_mfma_f32_16x16x16_f16", "timing.parameters.issue.matrix_pass=5"),
    ("MFMA + 3 v_add_f32", "timing.parameters.issue.matrix_start=8"),
    ("MFMA + 3 v_add_f32 of another wave", "timing.parameters.issue.matrix_start=8"),
    ("MFMA + 1 v_pk_mul_f32", "timing.parameters.issue.matrix_latency=16"),
    ("ds_read_b128 latency", "timing.parameters.lds.latency=60"),
    ("ds_read_b128 of four SIMDs", "timing.parameters.lds.bytes_per_clk=64"),
    ("ds_write_b128", "timing.parameters.lds.store_overhead=0"),
    ("buffer_load_dword to LDS", "timing.parameters.vector_memory.to_lds=16"),
    ("global_atomic_pk_add_bf16 against a store",
     "timing.parameters.vector_memory.atomic_factor=3"),
    ("loads in flight, 64 lines each", "timing.parameters.vector_memory.queue=48"),
    ("sL1D latency", "timing.parameters.memory.sl1d_latency=60"),
    ("vL1D latency", "timing.parameters.memory.vl1d_latency=130"),
    ("L2 latency", "timing.parameters.memory.l2_latency=350"),
    ("HBM latency", "timing.parameters.models.mi300x.memory.hbm_latency=700"),
    ("copy through HBM",
     "timing.parameters.models.mi300x.memory.hbm_write_gigabytes_per_second=3000"),
])
def test_a_wrong_parameter_is_found(measure: Measure, name: str, change: str) -> None:
    benchmark = published(name)
    right, wrong = measure(benchmark), measure(benchmark, change)
    assert right.modelled is not None
    assert wrong.modelled is not None
    assert abs(wrong.modelled / right.modelled - 1) > 0.05
    assert wrong.within is False


def test_a_chase_finds_the_cache_that_its_lines_fit_into(measure: Measure) -> None:
    """Not the line that it has just used: twice the cache is as bad as ten times."""
    chase = published("vL1D latency")
    found = {kib: measure(replace(chase, chase=Chase(kib << 10))).modelled
             for kib in (8, 16, 64, 320)}
    assert found[8] == found[16] == pytest.approx(116, rel=0.01)
    assert found[64] == found[320] == pytest.approx(288, rel=0.01)


def test_a_chain_visits_every_line_before_it_returns() -> None:
    words = np.frombuffer(chain(64 << 10), np.uint32)
    seen, at = [], 0
    for _ in range(512):
        seen.append(at)
        at = int(words[at // 4])
    assert at == 0
    assert sorted(seen) == list(range(0, 64 << 10, 128))
    steps = np.diff(seen)
    assert np.unique(steps).size > 200  # no stride to guess


def test_a_cold_chase_that_would_come_round_is_refused(measure: Measure) -> None:
    cold = replace(published("HBM latency"), chase=Chase(16 << 10, warm=False))
    with pytest.raises(BenchError, match="twice"):
        measure(cold)


def test_what_the_model_refuses_is_a_row_that_says_so(measure: Measure) -> None:
    row = measure(replace(published("v_add_f32"), body=("ds_nop",)))
    assert row.modelled is None
    assert row.within is False
    assert "ds_nop" in row.note


def test_text_that_does_not_assemble_is_an_error(measure: Measure) -> None:
    with pytest.raises(AssemblerError):
        measure(replace(published("v_add_f32"), body=("v_bogus v0",)))


def test_a_body_without_time_is_an_error(measure: Measure) -> None:
    nothing = Microbenchmark("nothing", 1, "s", Confidence.LOW, Basis.EMERGENT, ("// none",),
                             quantity=Quantity.CLK)
    with pytest.raises(BenchError, match="no time"):
        measure(nothing)
