"""Rooflines of made-up dispatches with one limit each, and of AITER's layer norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder
from asmevo.config import register
from asmevo.device.device import LaunchState
from asmevo.device.emulator.emulator import Emulator
from asmevo.device.emulator.machine import machine
from asmevo.isa.program import Program
from asmevo.profile.arithmetic import Number, OperationClass
from asmevo.profile.errors import ProfileError
from asmevo.profile.profile import (
    InstructionProfile,
    MemoryLevel,
    MemoryProfile,
    Profile,
    StallCause,
    WaveProfile,
)
from asmevo.profile.roofline import Limit, roofline
from asmevo.profile.windows import hot_windows, total_share
from asmevo.task.session import Session
from tests.profile.machines import ROUND

Assemble = Callable[..., Program]
MFMA = "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]"


def made(program: Program, cycles: int, issued: int,
         memory: MemoryProfile | None = None) -> Profile:
    """The first instruction issued so often on one unit, with that memory; four waves."""
    rows = [InstructionProfile(issued, {StallCause.VMCNT: 10}, memory)]
    rows += [InstructionProfile(0)] * (len(program) - 1)
    waves = tuple(WaveProfile(0, k, 0, 0, k, 0, 100 * cycles, issued) for k in range(4))
    return Profile("d", "modelled", "x", cycles, tuple(rows), clock_mhz=1000, waves=waves)


def test_a_full_matrix_pipe_is_the_limit(assemble: Assemble) -> None:
    # 32 clk each on four SIMDs: 100 of them keep 800 of 1000 clk.
    program = assemble([MFMA])
    found = roofline(made(program, 1000, 100), program, ROUND)
    assert (found.limit, found.level) == (Limit.MFMA, None)
    assert found.ceilings[0].utilisation == pytest.approx(0.8)
    operations = 100 * 2 * 32 * 32 * 8 * ROUND.compute_units
    assert found.operations == {OperationClass(Number.F16, True): operations}
    assert found.achieved == pytest.approx(operations / 1e-6)
    # At the roof all pipes are full: 2048 operations a clk and unit.
    assert found.attainable == pytest.approx(2048 * 10 * 1e9)


@pytest.mark.parametrize(("level", "lines"), [
    (MemoryLevel.HBM, 90), (MemoryLevel.L2, 225), (MemoryLevel.MALL, 113)])
def test_the_level_that_moves_the_most_is_the_limit(
        assemble: Assemble, level: MemoryLevel, lines: int) -> None:
    # 90 % of the level's rate: 12.8, 32 and 16 bytes a clk and unit.
    program = assemble(["global_load_dword v0, v[2:3], off"])
    found = roofline(made(program, 1000, 4, MemoryProfile(1024, {level: lines})), program, ROUND)
    assert (found.limit, found.level) == (Limit.BANDWIDTH, level)
    assert found.ceilings[0].utilisation == pytest.approx(0.9, rel=0.01)
    assert found.bytes[MemoryLevel.L2] == lines * 128 * 10


def test_core_clock_does_not_speed_up_memory(assemble: Assemble) -> None:
    program = assemble(["global_load_dword v0, v[2:3], off"])
    slow = replace(made(program, 1000, 4, MemoryProfile(1024, {MemoryLevel.HBM: 90})),
                   clock_mhz=500)
    assert roofline(slow, program, ROUND).limit is Limit.LATENCY


def test_lds_conflicts_count(assemble: Assemble) -> None:
    program = assemble(["ds_read_b32 v0, v1"])
    profile = made(program, 1000, 100, MemoryProfile(100 * 256, conflicts=1400))
    found = roofline(profile, program, ROUND)
    assert found.limit is Limit.LDS
    assert found.ceilings[0].utilisation == pytest.approx((400 + 1400) / 2000)


def test_vector_issue_and_latency(assemble: Assemble) -> None:
    program = assemble(["v_add_f32_e32 v0, v1, v2"])
    assert roofline(made(program, 1000, 900), program, ROUND).limit is Limit.ISSUE
    idle = roofline(made(program, 1000, 9), program, ROUND)
    assert idle.limit is Limit.LATENCY
    assert idle.evidence[0] == "no resource reaches 60% of its ceiling"
    assert idle.evidence[-1] == "stalled cycles: vmcnt 100%"


def test_a_launch_smaller_than_the_machine_scales_by_workgroups(assemble: Assemble) -> None:
    program = assemble([MFMA])
    found = roofline(made(program, 1000, 100), program, ROUND, workgroups=3)
    assert sum(found.operations.values()) == 3 * 100 * 2 * 32 * 32 * 8
    assert found.limit is Limit.MFMA


def test_profiles_without_counts_are_refused(assemble: Assemble) -> None:
    program = assemble([MFMA])
    for profile, reason in (
            (made(program, 0, 1), "no cycles"), (made(program, 9, 0), "no issue counts"),
            (replace(made(program, 9, 1), source="measured"), "is measured"),
            (Profile("d", "modelled", "x", 9, ()), "does not belong")):
        with pytest.raises(ProfileError, match=reason):
            roofline(profile, program, ROUND)


def test_layer_norm_as_the_emulator_runs_it(tmp_path: Path) -> None:
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        session = Session(compose("config", overrides=[
            "kernel.held_out_shapes=[]", "oracle.families=[normal]"]), tmp_path)
    baseline, device = session.baseline, session.device
    assert isinstance(device, Emulator)
    dispatch = baseline.dispatches[0]
    profile = baseline.loaded.profile(dispatch, LaunchState())
    x, y, z = dispatch.grid
    mi300x = machine(device.timing.parameters, device.name)
    found = roofline(profile, baseline.program, mi300x, workgroups=x * y * z)
    assert all(0.0 <= ceiling.utilisation <= 1.0 for ceiling in found.ceilings)
    assert found.limit is Limit.LATENCY  # 24 workgroups of a GPU that has room for hundreds
    # Every element is read and written as bf16, so memory moves at least that.
    assert found.bytes[MemoryLevel.L2] <= found.bytes[MemoryLevel.L1] * 2
    windows = hot_windows([profile], baseline.program, count=8, max_length=48)
    assert 0.3 < total_share(windows) <= 1.0
    gains = [w.recoverable for w in windows]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 0
    assert all(0 <= w.recoverable <= w.stalled for w in windows)
