"""The main loop of a production kernel: what is measured, and what its body is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder
from asmevo.codeobject.source import LocalFile
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.config import register
from asmevo.device.device import LaunchState
from asmevo.dispatch.declared import DeclaredOracle
from asmevo.dispatch.kernel import Kernel
from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.task.session import make
from asmevo.validation.loop import Loop, LoopError
from asmevo.validation.loop_body import loop_body
from asmevo.validation.section import Equipment, Loops
from tests.validation.conftest import emulator

ZEROS = DeclaredOracle(families=("zeros",))


@pytest.fixture(scope="module")
def loop(attention: Callable[..., Kernel]) -> Loop:
    return Loop("fmha", attention("MI308"), 54.24, "PYHIP", "M", goal=0.1)


@pytest.fixture(scope="module")
def attention() -> Callable[..., Kernel]:
    def kernel(machine: str, lengths: tuple[int, ...] = (512, 1024)) -> Kernel:
        register()
        shapes = ", ".join(f"{{B: 1, S: 256, T: {t}, H: 1, R: 1, P: 0}}" for t in lengths)
        with initialize_config_dir(config_folder(), version_base="1.3"):
            config = compose("config", overrides=[
                "kernel=aiter_fmha_fwd_bf16_group", f"kernel.choices.machine={machine}",
                "kernel.choices.rounding=rtna", f"kernel.shapes=[{shapes}]",
                "kernel.held_out_shapes=[]"])
        return cast(Kernel, make(config, "kernel", Kernel))

    return kernel


def test_the_loop_of_the_attention_kernel_is_near_what_was_measured(loop: Loop) -> None:
    row = loop.row(emulator(device="emulator_mi308x"), ZEROS)
    assert row.within is True
    wrong = loop.row(emulator("timing.parameters.issue.transcendental=32",
                              device="emulator_mi308x"), ZEROS)
    assert wrong.within is False


def test_a_loop_needs_two_lengths(attention: Callable[..., Kernel], loop: Loop) -> None:
    device = emulator(device="emulator_mi308x")
    with pytest.raises(LoopError, match="two shapes"):
        replace(loop, kernel=attention("MI308", (512,))).row(device, ZEROS)
    with pytest.raises(LoopError, match="no more matrix operations"):
        replace(loop, kernel=attention("MI308", (512, 512))).row(device, ZEROS)


def test_a_kernel_that_is_not_there_is_a_row_that_says_so(loop: Loop) -> None:
    absent = replace(loop.kernel, source=LocalFile("/absent/kernel.co"))
    row = replace(loop, kernel=absent).row(emulator(device="emulator_mi308x"), ZEROS)
    assert row.modelled is None
    assert "/absent/kernel.co" in row.note


def test_a_loop_against_another(loop: Loop) -> None:
    """The model gives both the same, for they are the same kernel."""
    device = emulator(device="emulator_mi308x")
    equipment = Equipment(device, ZigToolchain())
    other = replace(loop, name="other", expected=60.0, against="fmha", ratio_goal=0.1)
    rows = list(Loops(device, {"fmha": loop, "other": other}).rows(equipment))
    assert [row.name for row in rows] == ["fmha", "other", "other / fmha"]
    assert rows[2].expected == pytest.approx(60 / 54.24)
    assert rows[2].modelled == 1
    assert rows[2].within is True
    absent = replace(other, kernel=replace(loop.kernel, source=LocalFile("/absent/kernel.co")))
    *_, ratio = Loops(device, {"fmha": loop, "other": absent}).rows(equipment)
    assert ratio.modelled is None
    assert ratio.within is False
    with pytest.raises(LoopError, match="'nobody'"):
        list(Loops(device, {"other": replace(other, against="nobody")}).rows(equipment))


def test_the_body_of_the_main_loop_has_its_matrix_operations_once(loop: Loop) -> None:
    """64 a round of 32 keys by 256 queries, as PYHIP counts them."""
    loaded, (_, long) = loop.launches(emulator(device="emulator_mi308x"), ZEROS)
    counts = [row.issued for row in loaded.profile(long, LaunchState()).instructions]
    body = loop_body(loaded.program, counts)
    assert sum(i.unit is Unit.MFMA for i in body) == 64
    assert not any(i.unit in (Unit.BRANCH, Unit.END) for i in body)
    assert sum(i.op.startswith("v_pk_") for i in body) == pytest.approx(93, abs=5)


def test_a_block_that_is_passed_by_is_not_in_the_body() -> None:
    program = Program.from_disassembly([
        (0, 4, "s_mov_b32 s0, 9"),
        (4, 8, "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]"),
        (12, 4, "s_cbranch_scc1 1"),   # to 20
        (16, 4, "v_mov_b32_e32 v9, 1"),
        (20, 4, "s_sub_u32 s0, s0, 1"),
        (24, 4, "s_cbranch_scc0 65530"),  # to 4
        (28, 4, "s_endpgm")], {})
    matrix, move, subtract = (program.instructions[i] for i in (1, 3, 4))
    assert loop_body(program, [1, 9, 9, 1, 9, 9, 1]) == (matrix, subtract)
    assert loop_body(program, [1, 9, 9, 8, 9, 9, 1]) == (matrix, move, subtract)
    assert loop_body(Program.from_disassembly([(0, 4, "s_endpgm")], {}), [1]) == ()
