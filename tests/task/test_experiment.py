"""One table of many searches: what fails is named, what ended is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import asmevo
from asmevo.report.marked import MarkerError, markers
from asmevo.report.result import SCHEMA, Result, Status
from asmevo.report.terminal import print_result
from asmevo.task.search_process import Job
from asmevo.task.session import ConfigError

RunTask = Callable[..., Result]

SMALL = ("experiment=kernelbench", "task.only=[kb_sum_reduction,kb_gemm_bias_relu]",
         "search=greedy", "search.budget.attempts=3", "oracle.families=[normal]",
         "task.suites.level_1.kb_sum_reduction={shapes: [{B: 1, M: 40, N: 64}]}",
         "task.suites.level_2.kb_gemm_bias_relu={shapes: [{M: 10, N: 10, K: 40}]}")


def searches(result: Result) -> dict[str, dict[str, Any]]:
    details: Any = result.details
    return {row["kernel"]: row for row in details["comparison"]["rows"]}


def written(folder: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns
            for path in folder.glob("run/kb_*/result.json")}


def test_two_kernels_and_again(
        run: RunTask, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin, end = markers("kernelbench")
    document = tmp_path / "results.md"
    document.write_text(f"before\n{begin}\n{end}\nafter\n")
    # The second kernel's object cannot be had: that ends its search alone.
    broken = "+task.suites.level_2.kb_gemm_bias_relu.source.path=level2/none.hip"
    result = run(*SMALL, broken, f"readme={document}", "jobs=2")
    assert (result.status, result.exit_status) == (Status.INCOMPLETE, 1)
    rows = searches(result)
    assert list(rows) == ["kb_sum_reduction", "kb_gemm_bias_relu"]
    assert rows["kb_sum_reduction"]["status"] in ("committed", "none")
    assert rows["kb_sum_reduction"]["attempts"] == 3
    assert rows["kb_gemm_bias_relu"]["status"] == "error"
    assert "none.hip" in rows["kb_gemm_bias_relu"]["error"]
    assert rows["kb_gemm_bias_relu"]["reported"] == 1.0
    assert "none.hip" in document.read_text()
    first = written(tmp_path)

    # Mended, it is searched again, and the other is not.
    result = run(*SMALL, f"readme={document}", "jobs=2")
    assert (result.status, result.exit_status) == (Status.COMPARED, 0)
    assert {row["attempts"] for row in searches(result).values()} == {3}
    again = written(tmp_path)
    assert again["kb_sum_reduction"] == first["kb_sum_reduction"]
    assert again["kb_gemm_bias_relu"] != first["kb_gemm_bias_relu"]
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| kb_sum_reduction |" in text
    assert "none.hip" not in text
    assert (tmp_path / "run" / "table.md").read_text() in text
    comparison = json.loads((tmp_path / "run" / "comparison.json").read_text())
    assert [group["kernels"] for group in comparison["groups"]] == [1, 1]
    print_result(result)
    assert "kb_gemm_bias_relu" in capsys.readouterr().out


def test_what_is_kept(tmp_path: Path) -> None:
    job = Job("a", "kernel: {}", tmp_path)
    assert job.finished() is None
    (tmp_path / "search.yaml").write_text(job.config)
    for status, kept in (("none", True), ("committed", True), ("interrupted", False),
                         ("error", False)):
        (tmp_path / "result.json").write_text(json.dumps({"schema": SCHEMA, "status": status}))
        assert (job.finished() is not None) is kept
    (tmp_path / "result.json").write_text(json.dumps({"schema": SCHEMA, "status": "none"}))
    assert Job("a", "kernel: {name: b}", tmp_path).finished() is None
    (tmp_path / "result.json").write_text("{")
    assert job.finished() is None


def test_a_search_that_does_not_end(run: RunTask) -> None:
    result = run(*SMALL, "task.only=[kb_sum_reduction]", "search.budget.seconds=0.001",
                 "task.slack_seconds=0.3")
    (row,) = searches(result).values()
    assert row["status"] == "error"
    assert "did not end within 0.301 s" in row["error"]


@pytest.mark.parametrize(("override", "reason"), [
    ("task.only=[kb_gelo]", "task.only names 'kb_gelo', not some of kb_avg_pool2d, "),
    ("task.slack_seconds=0", "slack_seconds must be above 0"),
    ("jobs=0", "jobs must be at least 1"),
])
def test_settings_that_make_no_sense(run: RunTask, override: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        run("experiment=kernelbench", override)


def test_the_document_is_looked_at_first(run: RunTask, tmp_path: Path) -> None:
    document = tmp_path / "results.md"
    document.write_text("no markers\n")
    with pytest.raises(MarkerError):
        run(*SMALL, f"readme={document}")
    assert not written(tmp_path)


def test_an_interrupt_ends_the_searches(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    experiment = subprocess.Popen(
        [sys.executable, "-m", "asmevo", *SMALL, "search.budget.attempts=100000",
         f"hydra.run.dir={folder}", f"registry.path={tmp_path}/registry"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(asmevo.__file__).parent.parent)
             + os.pathsep + os.environ.get("PYTHONPATH", "")})
    first = folder / "kb_sum_reduction"
    try:
        deadline = time.monotonic() + 120
        while not (first / "attempts.jsonl").exists() and time.monotonic() < deadline:
            assert experiment.poll() is None, experiment.stderr
            time.sleep(0.05)
        experiment.terminate()
        _, complaint = experiment.communicate(timeout=120)
    finally:
        experiment.kill()
    assert (experiment.returncode, complaint) == (130, "asmevo: interrupted\n")
    assert json.loads((first / "result.json").read_text())["status"] == "interrupted"
    assert not (folder / "kb_gemm_bias_relu").exists()
