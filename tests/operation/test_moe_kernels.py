"""AITER's mixtures of experts on the emulator, against the reference that each YAML names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder, quoted
from asmevo.config import register
from asmevo.report.result import Result, Status
from asmevo.task.run import run_task

# A part of a row for each shape that fills a block only partly, more than one block of an expert,
# an expert without tokens, and several parts of the inner dimension.
BLOCK_SCALE = ("{T: 1, D: 1024, I: 256, E: 2, K: 1}", "{T: 37, D: 1536, I: 512, E: 4, K: 2}")
SINGLE = "{T: 37, D: 1024, I: 256, E: 2, K: 1}"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    """Runs a kernel's dispatches for these shapes instead of its YAML's."""

    def run(name: str, shapes: tuple[str, ...], *overrides: str,
            order_dependent: bool = True) -> Result:
        register()
        with initialize_config_dir(config_folder(), version_base="1.3"):
            config = compose("config", overrides=quoted([
                "task=run", f"kernel={name}", f"kernel.shapes=[{','.join(shapes)}]",
                "kernel.held_out_shapes=[]", f"registry.path={tmp_path}/registry", *overrides]))
        if not order_dependent:
            config.kernel.buffers[0].order_dependent = False
        return run_task(config, tmp_path)

    return run


def outputs(result: Result) -> list[Mapping[str, Any]]:
    """What is known of the buffer ``out``, dispatch by dispatch."""
    details: Any = result.details
    return [next(b for b in launch["buffers"] if b["name"] == "out")
            for launch in details["launches"]]


def test_block_scale_in_every_order_of_workgroups(run: Callable[..., Result]) -> None:
    result = run("aiter_fmoe", BLOCK_SCALE, "task.repeats=3")
    assert result.status is Status.AGREES, result.error
    assert all(found["accuracy"]["cosine"] > 0.99999 for found in outputs(result))


def test_sums_of_bf16_depend_on_the_order(run: Callable[..., Result]) -> None:
    result = run("aiter_fmoe", BLOCK_SCALE[1:], "task.repeats=2", order_dependent=False)
    assert result.status is Status.DISAGREES
    assert "'out' differs from one repeat to another" in str(result.error)


def test_block_scale_with_extreme_inputs(run: Callable[..., Result]) -> None:
    """Scales so small that the least maximum decides, and so spread that exponentials overflow."""
    result = run("aiter_fmoe", (SINGLE,), "task.families=[tiny,wide,boundary]")
    assert result.status is Status.RAN, result.error
    tiny, wide, boundary = outputs(result)
    # One scale of a token is NaN, and with it all of its row.
    assert [found["nan"] for found in (tiny, wide, boundary)] == [0, 0, 1024]
    for found in (tiny, wide):
        assert found["accuracy"]["class_mismatches"] == 0
        assert found["accuracy"]["max_rel"] <= 0.004
        assert found["accuracy"]["cosine"] > 0.99999
    assert boundary["accuracy"]["class_mismatches"] == 0


@pytest.mark.parametrize(("name", "shape", "share", "relative"), [
    ("aiter_fmoe", SINGLE, 1e-3, 2.0**-7),
    ("aiter_fmoe_stage1", "{T: 37, D: 768, P: 2, E: 3, K: 1}", 1e-3, 2.0**-7),
    # Hidden elements next to a tie of bf16 move small results by more than their own rounding.
    ("aiter_fmoe_bf16", "{T: 37, D: 512, I: 512, E: 2, K: 1}", 0.01, 0.1)])
def test_a_single_part_is_rounded_once(
    run: Callable[..., Result], name: str, shape: str, share: float, relative: float,
) -> None:
    """Where nothing is added up, hardly an element is not the reference rounded to bf16, and those
    are its neighbours: f32 sums in the kernel, and ties away from zero."""
    result = run(name, (shape,))
    assert result.status is Status.AGREES, result.error
    for found in outputs(result):
        assert found["accuracy"]["unequal"] <= share * found["count"]
        assert found["accuracy"]["max_rel"] < relative


@pytest.mark.parametrize("columns", [128, 256, 512])
def test_int8(run: Callable[..., Result], columns: int) -> None:
    result = run("aiter_fmoe_int8", ("{T: 37, D: 768, P: 2, E: 4, K: 2}",),
                 f"kernel.constants.N={columns}", "task.repeats=2")
    assert result.status is Status.AGREES, result.error


def test_bf16(run: Callable[..., Result]) -> None:
    result = run("aiter_fmoe_bf16", ("{T: 37, D: 768, I: 1024, E: 4, K: 2}",), "task.repeats=2")
    assert result.status is Status.AGREES, result.error


def test_first_stage(run: Callable[..., Result]) -> None:
    result = run("aiter_fmoe_stage1", (
        "{T: 1, D: 512, P: 1, E: 2, K: 1}", "{T: 37, D: 1024, P: 2, E: 4, K: 2}",
    ), "task.repeats=3")
    assert result.status is Status.AGREES, result.error


@pytest.mark.parametrize("wrong", [
    "kernel.operation.activation=gelu_tanh", "kernel.operation.hidden_block=256"])
def test_another_layer_is_told_apart(run: Callable[..., Result], wrong: str) -> None:
    result = run("aiter_fmoe", ("{T: 20, D: 1024, I: 256, E: 2, K: 1}",), wrong)
    assert result.status is Status.DISAGREES
