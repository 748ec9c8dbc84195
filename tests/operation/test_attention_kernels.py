"""AITER's flash attention on the emulator, against the reference that each YAML names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder, quoted
from asmevo.config import register
from asmevo.report.result import Status
from asmevo.task.run import run_task

Accuracies = Mapping[str, Mapping[str, float]]

FORWARD = ("{B: 1, S: 300, T: 333, H: 2, R: 2}", "{B: 1, S: 33, T: 31, H: 1, R: 1}")
PACKED = ("{B: 3, S: 300, T: 333, H: 2, R: 2, P: 20}",)
BACKWARD = ("{B: 1, S: 256, T: 256, H: 2, R: 2}",)
PADDED = ("{B: 1, S: 97, T: 333, H: 2, R: 2, D: 128}", "{B: 1, S: 65, T: 17, H: 1, R: 1, D: 72}")

public = pytest.mark.skipif(
    not os.environ.get("AITER_HSA_DIR"),
    reason="needs objects of the public repository ROCm/aiter: set AITER_HSA_DIR to its folder hsa")


@pytest.fixture
def agree(tmp_path: Path) -> Callable[..., Accuracies]:
    """Runs a kernel's dispatches for these shapes, or for its own, which must agree with its
    reference. Gives the accuracies of the last one."""

    def run(name: str, shapes: tuple[str, ...], *overrides: str, agrees: bool = True) -> Accuracies:
        given = [f"kernel.shapes=[{','.join(shapes)}]", "kernel.held_out_shapes=[]"]
        register()
        with initialize_config_dir(config_folder(), version_base="1.3"):
            config = compose("config", overrides=quoted([
                "task=run", f"kernel={name}", *(given if shapes else ()),
                f"registry.path={tmp_path}/registry", *overrides]))
        result = run_task(config, tmp_path)
        expected = Status.AGREES if agrees else Status.DISAGREES
        assert result.status is expected, result.error
        details: Any = result.details
        return {buffer["name"]: buffer["accuracy"] for buffer in details["launches"][-1]["buffers"]
                if buffer["accuracy"] is not None}

    return run


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("rounding", ["rtne", "rtna", "rtz"])
def test_forward(agree: Callable[..., Accuracies], mask: str, rounding: str) -> None:
    found = agree("aiter_fmha_fwd_bf16", FORWARD, f"kernel.choices.mask={mask}",
                  f"kernel.choices.rounding={rounding}")
    assert found.keys() == {"o", "lse"}


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_forward_of_the_smaller_machine(agree: Callable[..., Accuracies], mask: str) -> None:
    agree("aiter_fmha_fwd_bf16", FORWARD, f"kernel.choices.mask={mask}",
          "kernel.choices.machine=MI308", "task.repeats=2")


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_forward_of_packed_sequences(agree: Callable[..., Accuracies], mask: str) -> None:
    agree("aiter_fmha_fwd_bf16_group", PACKED, f"kernel.choices.mask={mask}", "task.repeats=2")


def test_the_reference_tells_the_roundings_apart(agree: Callable[..., Accuracies]) -> None:
    """With another rounding than the object's hardly a result is the same."""
    shapes = ("{B: 1, S: 64, T: 200, H: 1, R: 1}",)
    right = agree("aiter_fmha_fwd_bf16", shapes)
    wrong = agree("aiter_fmha_fwd_bf16", shapes, "kernel.operation.rounding=rtz", agrees=False)
    assert right["o"]["unequal"] < 0.005 * 64 * 128
    assert wrong["o"]["unequal"] > 0.3 * 64 * 128


@pytest.mark.parametrize("rounding", ["rtne", "rtna", "rtz"])
def test_backward(agree: Callable[..., Accuracies], rounding: str) -> None:
    found = agree("aiter_fmha_bwd", BACKWARD, f"kernel.choices.rounding={rounding}",
                  "task.repeats=2")
    assert found.keys() == {"dq", "dk", "dv"}


@pytest.mark.parametrize("mask", ["full", "top_left", "bottom_right"])
def test_backward_of_any_lengths(agree: Callable[..., Accuracies], mask: str) -> None:
    agree("aiter_fmha_bwd_padded", PADDED, f"kernel.choices.mask={mask}")


@pytest.mark.parametrize("mask", ["full", "top_left", "bottom_right"])
def test_backward_of_packed_sequences(agree: Callable[..., Accuracies], mask: str) -> None:
    agree("aiter_fmha_bwd_group", ("{B: 2, S: 97, T: 260, H: 2, R: 2, P: 20}",),
          f"kernel.choices.mask={mask}")


def test_backward_with_up_to_192_columns(agree: Callable[..., Accuracies]) -> None:
    agree("aiter_fmha_bwd_padded", ("{B: 1, S: 97, T: 133, H: 2, R: 2, D: 184}",),
          "kernel.choices.width=wide")


@pytest.mark.corpus
@pytest.mark.parametrize("rounding", ["rtne", "rtna", "rtz"])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("name", "choices"), [
    *((name, (f"mask={mask}", f"machine={machine}"))
      for name in ("aiter_fmha_fwd_bf16", "aiter_fmha_fwd_bf16_group")
      for mask in ("full", "causal") for machine in ("MI300", "MI308")),
    *(("aiter_fmha_bwd", (f"mask={mask}",)) for mask in ("full", "top_left")),
    *(("aiter_fmha_bwd_group", (f"mask={mask}",))
      for mask in ("full", "top_left", "bottom_right")),
    *(("aiter_fmha_bwd_padded", (f"mask={mask}", f"width={width}"))
      for mask in ("full", "top_left", "bottom_right") for width in ("narrow", "wide")),
])
def test_every_object_of_the_wheel(
    agree: Callable[..., Accuracies], name: str, choices: tuple[str, ...], rounding: str, seed: int
) -> None:
    agree(name, (), f"oracle.seed={seed}", "task.repeats=2", f"kernel.choices.rounding={rounding}",
          *(f"kernel.choices.{choice}" for choice in choices))


@public
@pytest.mark.parametrize("columns", [64, 128, 192])
def test_backward_row_products(agree: Callable[..., Accuracies], columns: int) -> None:
    agree("aiter_fmha_bwd_odo", ("{B: 2, S: 200, H: 3}",), f"kernel.constants.D={columns}")


@public
@pytest.mark.parametrize("rounding", ["rtne", "rtna", "rtz"])
def test_rounding_of_dq(agree: Callable[..., Accuracies], rounding: str) -> None:
    name, shapes, choice = ("aiter_fmha_bwd_dq_convert", ("{B: 2, S: 100, H: 3}",),
                            f"kernel.choices.rounding={rounding}")
    assert agree(name, shapes, choice)["dq"]["unequal"] == 0
    # The objects do not wait for what they read from LDS.
    agree(name, shapes, choice, "kernel.launch.relies_on_time=false", agrees=False)


@public
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_forward_with_192_columns(agree: Callable[..., Accuracies], mask: str) -> None:
    agree("aiter_fmha_hd192", FORWARD, f"kernel.choices.mask={mask}")


@public
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_forward_of_fp8(agree: Callable[..., Accuracies], mask: str) -> None:
    agree("aiter_fmha_fwd_fp8", FORWARD, f"kernel.choices.mask={mask}")


@public
@pytest.mark.parametrize("name", ["aiter_fmha_hd192_group", "aiter_fmha_fwd_fp8_group"])
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_public_forward_of_packed_sequences(
    agree: Callable[..., Accuracies], name: str, mask: str
) -> None:
    agree(name, PACKED, f"kernel.choices.mask={mask}")


@public
def test_fp8_objects_scale_the_second_block_twice(agree: Callable[..., Accuracies]) -> None:
    shape = "{{B: 1, S: {}, T: 600, H: 1, R: 1}}".format
    overrides = ("kernel.choices.mask=causal", "kernel.operation.reciprocal=false")
    agree("aiter_fmha_fwd_fp8", (shape(256),), *overrides)
    wrong = agree("aiter_fmha_fwd_fp8", (shape(512),), *overrides, agrees=False)
    assert wrong["lse"]["max_abs"] > 0.1
