"""``task=compare`` reads what searches left, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.report.comparison import ComparisonError
from asmevo.report.marked import MarkerError, markers
from asmevo.report.result import SCHEMA, Result, Status
from asmevo.report.terminal import print_result
from asmevo.task.session import ConfigError

RunTask = Callable[..., Result]


def search(folder: Path, kernel: str, **changes: Any) -> None:
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({
        "schema": SCHEMA, "task": "optimize", "kernel": kernel, "status": "committed",
        "speedup": 1.3, "speedup_again": 1.21, "attempts": 10, "commits": 1, "timings": [],
        **changes}))


def test_a_table_of_a_sweep(
        run: RunTask, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search(tmp_path / "sweep" / "0", "l1_one")
    search(tmp_path / "sweep" / "1", "l2_two", status="none", speedup_again=None)
    begin, end = markers("comparison")
    document = tmp_path / "results.md"
    document.write_text(f"before\n{begin}\n{end}\nafter\n")
    result = run("task=compare", f"runs={tmp_path}/sweep", f"readme={document}",
                 "task.groups={Level 1: 'l1_*'}")
    assert result.status is Status.COMPARED
    assert result.exit_status == 0
    print_result(result)
    out = capsys.readouterr().out
    assert "l1_one" in out
    assert "1 of 2 improved, geometric mean 1.100x" in out
    text = (tmp_path / "run" / "table.md").read_text()
    assert document.read_text() == f"before\n{begin}\n{text}{end}\nafter\n"
    written = json.loads((tmp_path / "run" / "comparison.json").read_text())
    assert written["totals"]["geometric_mean"] == pytest.approx(1.1)


def test_a_list_of_runs(run: RunTask, tmp_path: Path) -> None:
    search(tmp_path / "a", "one")
    search(tmp_path / "b", "two")
    result = run("task=compare", f"runs=[{tmp_path}/b,{tmp_path}/a]")
    assert result.details is not None
    assert [r["kernel"] for r in result.details["comparison"]["rows"]] == ["two", "one"]


def test_what_cannot_be_compared(run: RunTask, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs runs="):
        run("task=compare")
    with pytest.raises(ComparisonError, match="no run folder"):
        run("task=compare", f"runs={tmp_path}/nothing")
    search(tmp_path / "sweep" / "0", "l1_one")
    with pytest.raises(MarkerError, match=r"cannot read readme='.*nothing.md': No such file"):
        run("task=compare", f"runs={tmp_path}/sweep", f"readme={tmp_path}/nothing.md")
