"""A recorded run repeated from its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asmevo.report.result import Result
from asmevo.report.terminal import _rows
from tests.task.conftest import RunTask

SETTINGS = ("kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[{M:4}]", "gates.isolate=false")


def lineage(folder: Path) -> list[tuple[str, int | None, float, str]]:
    return [(n["sha256"], n["parent"], n["speedup"], n["rationale"])
            for n in json.loads((folder / "lineage.json").read_text())]


def test_a_replayed_run_has_the_same_lineage(
        run: RunTask, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = run(*SETTINGS, "search.budget.attempts=20")
    assert first.commits >= 2
    folder = tmp_path / "run"
    expected = lineage(folder)
    folder.rename(tmp_path / "recorded")
    again = run(*SETTINGS, "search.budget.attempts=20", "proposer=replay",
                f"proposer.transcript={tmp_path}/recorded")
    assert lineage(folder) == expected
    assert (again.attempts, again.commits) == (first.attempts, first.commits)
    assert again.replacement_sha256 == first.replacement_sha256
    assert (again.faults, again.last_fault) == (0, None)

    lines = map(json.loads, (folder / "proposals.jsonl").read_text().splitlines())
    one = next(line for line in lines if line["sha256"] == expected[1][0])
    # What was built to something else than was recorded is no lost worker: the search goes on.
    other = replayed(run, tmp_path, {**one, "sha256": "ab" * 32})
    assert (other.commits, other.faults, other.stopped) == (1, 0, "exhausted")
    assert f"a candidate is built to {expected[1][0]}" in caplog.text
    # A recording of another kernel ends the search, and what was wrong is told.
    lost = replayed(run, tmp_path, {**one, "base": "c" * 64})
    assert (lost.attempts, lost.stopped) == (0, "faults")
    assert lost.last_fault is not None
    assert "it is of another kernel" in lost.last_fault
    assert ("lost workers", f"{lost.faults}, the last: {lost.last_fault}") in tuple(_rows(lost))


def replayed(run: RunTask, folder: Path, *attempts: dict[str, Any]) -> Result:
    transcript = folder / "some.jsonl"
    transcript.write_text("".join(json.dumps(attempt) + "\n" for attempt in attempts))
    return run(*SETTINGS, "proposer=replay", f"proposer.transcript={transcript}")
