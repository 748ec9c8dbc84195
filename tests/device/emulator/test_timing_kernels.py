"""Production kernels of matrix operations under the cycle model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder
from asmevo.config import register
from asmevo.device.device import LaunchState
from asmevo.isa.instruction import Unit
from asmevo.task.session import Session


def session(folder: Path, *overrides: str) -> Session:
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        return Session(compose("config", overrides=[
            *overrides, "kernel.held_out_shapes=[]", "oracle.families=[normal]"]), folder)


def test_the_loop_of_the_attention_forward_kernel(tmp_path: Path) -> None:
    """54.24 clk a matrix operation and SIMD, measured on an MI308X (PYHIP)."""
    made = session(
        tmp_path, "kernel=aiter_fmha_fwd_bf16_group", "kernel.choices.machine=MI308",
        "kernel.choices.rounding=rtna", "device=emulator_mi308x",
        "kernel.shapes=[{B: 1, S: 256, T: 1024, H: 1, R: 1, P: 0}, "
        "{B: 1, S: 256, T: 2048, H: 1, R: 1, P: 0}]")
    clk, operations = [], []
    for dispatch in made.baseline.dispatches:
        profile = made.baseline.loaded.profile(dispatch, LaunchState())
        clk.append(profile.cycles)
        operations.append(sum(
            row.issued for row, instruction in zip(
                profile.instructions, made.baseline.program.instructions, strict=True)
            if instruction.unit is Unit.MFMA))
    per_operation = (clk[1] - clk[0]) / (operations[1] - operations[0]) * 4
    assert per_operation == pytest.approx(54.24, rel=0.1)


def test_the_mixture_of_experts_is_timed_and_its_atomics_are_noise(tmp_path: Path) -> None:
    made = session(tmp_path, "kernel=aiter_fmoe",
                   "kernel.shapes=[{T: 45, D: 1024, I: 512, E: 3, K: 3}]")
    baseline = made.baseline
    baseline.self_check(made.gates.tolerance)
    # bf16 results below 4: an addition in another order moves a few steps of 1/64 at most.
    noise = baseline.noise(0).values()
    assert 0 < max(n.max_abs for n in noise) < 0.1
    assert baseline.timing(0, samples=1, warmup=0).samples_us[0] > 10
