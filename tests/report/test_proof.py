"""The table of a sweep holds the worst of every kernel's dispatches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asmevo.report.proof import main, results, table


def accuracy(**changes: Any) -> dict[str, Any]:
    return {"elements": 10, "max_abs": 0.0, "max_rel": 0.0, "cosine": 1.0, "unequal": 0,
            "class_mismatches": 0, **changes}


def result(kernel: str, *accuracies: dict[str, Any] | None) -> dict[str, Any]:
    return {"task": "run", "kernel": kernel, "status": "agrees", "error": None, "details": {
        "launches": [{"buffers": [{"name": "in", "element": "i8", "accuracy": None},
                                  {"name": "out", "element": "f32", "accuracy": found}]}
                     for found in accuracies]}}


def write(folder: Path, name: str, content: dict[str, Any]) -> None:
    (folder / name).mkdir()
    (folder / name / "result.json").write_text(json.dumps(content))


def test_the_worst_of_each_buffer(tmp_path: Path) -> None:
    write(tmp_path, "1", result("b", accuracy(max_abs=0.5, cosine=0.9, unequal=1),
                                accuracy(max_rel=0.25, unequal=2)))
    write(tmp_path, "0", result("a", accuracy()))
    write(tmp_path, "2", {"task": "optimize", "kernel": "c"})
    rows = table(results(tmp_path)).splitlines()[2:]
    assert rows[0].startswith("| a | 1 | out (f32) | 10 | 0 | 0 | 1.0000000 | 0 | agrees |")
    assert rows[1:] == ["| b | 2 | out (f32) | 20 | 0.5 | 0.25 | 0.9000000 | 3 | agrees |"]


def test_a_kernel_that_did_not_run_says_why(tmp_path: Path) -> None:
    write(tmp_path, "0", {"task": "run", "kernel": None, "status": "error", "error": "no file",
                          "details": None})
    assert table(results(tmp_path)).endswith("| error: no file |")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "0", result("a", accuracy()))
    assert main([str(tmp_path)]) == 0
    assert "| a | 1 |" in capsys.readouterr().out
    assert main([]) == 2


@pytest.mark.parametrize("content", [None, "{", '{"task": "optimize"}', "[]"])
def test_a_folder_without_results(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None) -> None:
    folder = tmp_path / "sweep"
    if content is not None:
        folder.mkdir()
        (folder / "result.json").write_text(content)
    assert main([str(folder)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("asmevo: ")
    assert err.count("\n") == 1
    assert str(folder) in err
