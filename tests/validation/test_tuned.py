"""AITER's measured times beside the cycle model's, for objects of the amd-aiter wheel."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from asmevo.codeobject.toolchain import Toolchain
from asmevo.device.emulator.emulator import Emulator
from asmevo.dispatch.dispatch import Role
from asmevo.task.session import make
from asmevo.validation.clearing import Clearing
from asmevo.validation.row import Confidence
from asmevo.validation.tuned import TunedTimes, machine, tuned_validation
from asmevo.validation.tuned_dispatch import composed, launch_of
from asmevo.validation.tuned_kernels import Declaration, declarations
from asmevo.validation.tuned_rows import TunedRow, tuned_rows

SMALL_ATTENTION = "B=1 S=1024 T=1024 H=32 R=4"
public = pytest.mark.skipif(
    not os.environ.get("AITER_HSA_DIR"),
    reason="needs objects of the public repository ROCm/aiter: set AITER_HSA_DIR to its folder hsa")


def row_of(kernel: str, shape: str) -> TunedRow:
    return next(r for r in tuned_rows() if r.kernel == kernel and r.shape == shape)


@pytest.mark.parametrize(("kernel", "shape"), [
    ("fmoe_stage1_bf16_pertokenFp8_doweight_g1u1_32x64_4tg_pf3", "T=4 D=2304 I=1536 E=8 K=2"),
    ("fwd_hd128_bf16_causal", SMALL_ATTENTION),
])
def test_a_row_of_the_wheel(kernel: str, shape: str) -> None:
    """Within a factor of three: it is the kernel and the shape that were measured."""
    row = row_of(kernel, shape)
    found, = tuned_validation(rows=[row])
    assert found.modelled is not None, found.note
    assert row.microseconds / 3 < found.modelled < row.microseconds * 3
    assert (found.expected, found.unit, found.confidence) == (
        row.microseconds, "us", Confidence.MEDIUM)
    assert found.group == f"{row.family} {machine(row)}"
    assert (found.kernel, found.shape, found.source) == (kernel, shape, row.source)


def test_a_row_without_its_object_is_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:
    monkeypatch.setenv("AITER_HSA_DIR", str(tmp_path))
    row = next(r for r in tuned_rows() if r.family == "fp8gemm")
    found, = tuned_validation(rows=[row])
    assert found.modelled is None
    assert f"{row.kernel}.co" in found.note
    assert "AITER_HSA_DIR" in found.note


def test_a_machine_that_no_configuration_has() -> None:
    found, = tuned_validation(rows=[TunedRow(
        "fwd", "fwd_hd128_bf16_full", 228, SMALL_ATTENTION, 1.0, "nowhere")])
    assert found.modelled is None
    assert "228 compute units" in found.note
    assert found.group == "fwd 228 CU"


def test_a_row_that_takes_too_long() -> None:
    row = row_of("fwd_hd128_bf16_full", "B=1 S=16384 T=16384 H=64 R=16")
    found = TunedTimes(seconds=0.2).row(row)
    assert found.modelled is None
    assert "watchdog" in found.note


def test_tokens_are_routed_and_weights_take_no_memory() -> None:
    row = row_of("fmoe_stage1_bf16_pertokenFp8_g1u1_16x64_5tg_pf3",
                 "T=32 D=6144 I=256 E=257 K=9")
    declared, = declarations(row)
    dispatch = launch_of(declared).dispatch
    regions = {region.name: region for region in dispatch.regions}
    assert len(regions["w1"].data) == 257 * 2 * 256 * 6144 > 1 << 29
    assert not any(regions["w1"].data[:4096])
    valid, tokens = np.frombuffer(regions["valid_ids"].data, np.uint32)
    ids = np.frombuffer(regions["sorted_ids"].data, np.uint32)[:valid] & 0xFFFFFF
    assert tokens == 32
    assert np.count_nonzero(ids < 32) == 32 * 9
    experts = np.frombuffer(regions["sorted_experts"].data, np.uint32)[:valid // 16]
    assert 100 < len(set(experts.tolist())) <= 32 * 9


def test_a_cleared_output() -> None:
    config = composed(["device=emulator"])
    emulator: Emulator = make(config, "device", Emulator)
    launch = Clearing(make(config, "toolchain", Toolchain)).launch(5000)
    assert launch.dispatch.grid == (3, 1, 1)
    dispatch = launch.dispatch.with_poisoned_outputs(1)
    region, = emulator.load(launch.code_object, launch.symbol).run(dispatch).regions
    assert dispatch.regions[0].role is Role.OUTPUT
    assert any(dispatch.regions[0].data)
    assert region == bytes(5000)


@public
@pytest.mark.parametrize("row", [
    next(r for r in tuned_rows() if r.family == family)
    for family in ("i8gemm", "fp8gemm", "bf16gemm", "fmha_bwd")], ids=lambda row: row.family)
def test_a_row_of_the_repository(row: TunedRow) -> None:
    found, = tuned_validation(rows=[row])
    assert found.modelled is not None, found.note
    assert row.microseconds / 3 < found.modelled < row.microseconds * 3


def test_a_declaration_names_what_to_run() -> None:
    declared = Declaration("aiter_fmha_fwd_bf16", (
        "kernel.choices.mask=causal", "kernel.shapes=[{B: 1,S: 256,T: 256,H: 1,R: 1}]",
        "kernel.held_out_shapes=[]"))
    launch = launch_of(declared)
    assert launch.dispatch.grid == (1, 1, 1)
    assert not any(launch.dispatch.regions[1].data)
