"""``task=run``: what a kernel gives, and how near its reference that is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from asmevo.dispatch.generator import GeneratorError
from asmevo.report.result import Result, Status
from asmevo.report.terminal import print_result


def test_layer_norm_agrees(run: Callable[..., Result]) -> None:
    result = run("task=run", "task.repeats=3")
    assert result.status is Status.AGREES
    assert result.exit_status == 0
    assert result.details is not None
    assert result.details["operation"] == "ResidualRmsNorm"
    shapes = [launch["dispatch"] for launch in result.details["launches"]]
    assert shapes == [f"M{rows}-normal" for rows in (2, 16, 48, 6, 70)]
    for launch in result.details["launches"]:
        assert (launch["fault"], launch["varies"]) == (None, None)
        written = {b["name"]: b for b in launch["buffers"] if b["role"] == "output"}
        assert written.keys() == {"out", "residual_out"}
        assert written["residual_out"]["accuracy"]["unequal"] == 0
        assert written["out"]["within"] is True
        assert written["out"]["accuracy"]["cosine"] > 0.999999


def test_a_result_outside_the_bounds_disagrees(run: Callable[..., Result]) -> None:
    result = run("task=run", "kernel.accuracy.out.max_rel=1e-9", "kernel.accuracy.out.unequal=0")
    assert result.status is Status.DISAGREES
    assert result.exit_status == 1
    assert "'out' is further from its reference" in str(result.error)
    assert "M2-normal" in str(result.error)


def test_a_fault_is_no_disagreement(run: Callable[..., Result]) -> None:
    result = run("task=run", "kernel.launch.grid=[M, 1, 1]")
    assert result.status is Status.FAULTED
    assert result.exit_status == 1
    assert "outside every mapped region" in str(result.error) or "read-only" in str(result.error)
    assert result.details is not None
    assert all(launch["buffers"] == [] for launch in result.details["launches"]
               if launch["fault"])


@pytest.mark.parametrize("reference", [(), ("kernel.operation=null",)])
def test_a_launch_that_does_not_end_faults(
        run: Callable[..., Result], reference: tuple[str, ...]) -> None:
    result = run("task=run", "device.instruction_budget=1000", "kernel.shapes=[{M:2}]", *reference)
    assert result.status is Status.FAULTED
    assert "budget" in str(result.error)


def test_bounds_hold_for_normal_inputs(
        run: Callable[..., Result], capsys: pytest.CaptureFixture[str]) -> None:
    """Of the other families the distance is shown, and nothing is said about it."""
    short = ("task=run", "kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[]",
             "kernel.accuracy.out.unequal=0", "kernel.accuracy.out.max_rel=1e-9")
    result = run(*short, "task.families=[tiny,boundary,wide]")
    assert result.status is Status.RAN
    assert result.details is not None
    for launch in result.details["launches"]:
        assert {b["within"] for b in launch["buffers"]} == {None}
        assert all(b["accuracy"] for b in launch["buffers"] if b["role"] == "output")
    print_result(result)
    assert "no bound" in capsys.readouterr().out
    assert run(*short, "task.families=[normal,tiny]").status is Status.DISAGREES


def test_without_a_reference_it_only_runs(run: Callable[..., Result], tmp_path: Path) -> None:
    result = run("task=run", "kernel.operation=null", "task.families=[normal,tiny]")
    assert result.status is Status.RAN
    assert result.folder is not None
    written = json.loads((Path(result.folder) / "result.json").read_text())
    assert written["status"] == "ran"
    assert {b["accuracy"] for launch in written["details"]["launches"]
            for b in launch["buffers"]} == {None}


def test_the_sanitizer_reports_what_the_result_hides(run: Callable[..., Result]) -> None:
    """The second row's sums overwrite the first's in LDS without a barrier (docs/sanitizer.md)."""
    result = run("task=run", "task.sanitize=true", "kernel.shapes=[{M:2}]",
                 "kernel.held_out_shapes=[]")
    assert result.status is Status.AGREES
    assert result.details is not None
    (launch,) = result.details["launches"]
    assert {report["kind"] for report in launch["sanitizer"]["reports"]} == {"lds-race"}
    (line,) = launch["sanitizer"]["summary"]
    assert "'ds_write_b32 v221, v12' at 0x6cc" in line
    plain = run("task=run", "kernel.shapes=[{M:2}]").details
    assert plain is not None
    assert plain["launches"][0]["sanitizer"] is None


def test_an_unknown_family_is_named(run: Callable[..., Result]) -> None:
    with pytest.raises(GeneratorError, match="'nromal'"):
        run("task=run", "task.families=[nromal]")
