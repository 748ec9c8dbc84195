"""``task=validate_timing``: what it runs, what it judges, and what it leaves."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.errors import AsmEvoError
from asmevo.report.marked import MarkerError, markers
from asmevo.report.result import Result, Status
from asmevo.report.timing import MARKER, markdown

RunTask = Callable[..., Result]

SMALL = ("task=validate_timing", "task.sections=[microbenchmarks]")


def details(**changes: object) -> dict[str, Any]:
    row = {"group": "g", "name": "n", "unit": "clk", "expected": 4.0, "modelled": 5.0,
           "error": 0.25, "within": False, "basis": "emergent", "source": "S", "confidence": "M",
           "note": "", "kernel": "", "shape": "", "goal": 0.05, **changes}
    return {"targets": [{"group": "g", "demand": "each within 5%", "found": "0 of 1",
                         "met": False}],
            "groups": [{"group": "g", "rows": 1, "answered": 1, "median": 0.25, "p90": 0.25,
                        "worst": 0.25, "overall": 0.75, "within_kernel": None, "kernels": 0,
                        "within_shape": 0.5, "shapes": 3}],
            "rows": [row]}


def test_the_microbenchmarks_of_a_machine(run: RunTask, tmp_path: Path) -> None:
    result = run(*SMALL, "device.model=mi308x")
    assert result.details is not None
    rows = result.details["rows"]
    hbm = [row["expected"] for row in rows if row["name"] == "HBM latency"]
    assert hbm == [650]
    # The copy is an MI300X's.
    assert [row["name"] for row in rows if row["unit"] == "TB/s"] == ["reads from HBM"]
    logged = (tmp_path / "run" / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in logged] == rows
    missed = [row["name"] for row in rows if row["within"] is False]
    assert result.status is (Status.MISSED if missed else Status.MET)


def test_a_document_gets_the_table_and_a_changed_parameter_shows(
        run: RunTask, tmp_path: Path) -> None:
    begin, end = markers(MARKER)
    document = tmp_path / "timing.md"
    document.write_text(f"before\n{begin}\nstale\n{end}\nafter\n")
    result = run(*SMALL, f"readme={document}", "device.timing.parameters.issue.transcendental=20")
    text = document.read_text()
    assert text.startswith(f"before\n{begin}\n**Targets**")
    assert text.endswith(f"{end}\nafter\n")
    assert "stale" not in text
    assert "| v_exp_f32 | 16 | 20 | clk | +25.0% ! | parameter | PYHIP [M] |  |" in text
    assert result.status is Status.MISSED
    assert result.exit_status == 1
    assert text.count(str(result.device)) == 1


@pytest.mark.parametrize(("overrides", "message"), [
    (("task.sections=[nonsense]",), "nonsense"),
    (("task.sections=[]",), "is empty"),
    (("task.sections=[tuned]", "task.parts.tuned.count=0"), "at least 1, or null"),
    (("task.sections=[loop]", "task.parts.loop.loops.bf16_mi308.expected=0"), "nothing can be"),
    (("task.sections=[mca]", "task.parts.mca=3"), "not a section"),
    (("+task.targets.mean=0.1",), "'mean' is not"),
    (("~task.targets.rank",), "'rank' is missing"),
])
def test_sections_that_are_none_are_refused(
        run: RunTask, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(AsmEvoError, match=message):
        run("task=validate_timing", *overrides)


def test_a_document_without_markers_is_refused_before_the_work(
        run: RunTask, tmp_path: Path) -> None:
    document = tmp_path / "timing.md"
    document.write_text("is empty")
    with pytest.raises(MarkerError):
        run(*SMALL, f"readme={document}")
    assert not (tmp_path / "run" / "rows.jsonl").exists()


def test_llvm_mca_that_is_not_there_ends_the_task_in_a_sentence(
        command_line: Callable[..., subprocess.CompletedProcess[str]],
        read_result: Callable[[], dict[str, Any]]) -> None:
    done = command_line("task=validate_timing", "task.sections=[mca]",
                        "task.parts.mca.path=/absent/llvm-mca")
    assert done.returncode == 2
    assert done.stderr.startswith("asmevo: cannot run '/absent/llvm-mca'")
    result = read_result()
    assert (result["task"], result["status"]) == ("validate_timing", "error")


def test_a_terminal_shows_targets_and_rows(
        command_line: Callable[..., subprocess.CompletedProcess[str]],
        read_result: Callable[[], dict[str, Any]]) -> None:
    done = command_line(*SMALL)
    assert done.returncode in (0, 1), done.stderr
    assert "each within 5%" in done.stdout
    assert "v_mfma_f32_32x32x8_bf16" in done.stdout
    assert read_result()["details"]["sections"] == ["microbenchmarks"]


def test_markdown_of_hostile_names_and_of_rows_without_an_answer() -> None:
    text = markdown(details(name="a|b<script>", modelled=None, error=None, note="no\nanswer"), "d")
    line = next(line for line in text.splitlines() if "script" in line)
    assert line == r"| a\|b&lt;script> | 4 | - | clk | - ! | emergent | S [M] | no\nanswer |"
    assert "| g | 1 | 1 | 25.0% | 25.0% | 25.0% | 0.75 | - | 0.50 (3) |" in text


def test_of_many_rows_the_worst_are_shown() -> None:
    many = details()
    many["rows"] = [{**many["rows"][0], "name": f"row{n}", "error": n / 1000} for n in range(300)]
    text = markdown(many, "d")
    assert "300 rows, the 10 of the largest error" in text
    assert "row299" in text
    assert "row289" not in text
