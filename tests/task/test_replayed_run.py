"""A recorded run repeated from its folder."""

from __future__ import annotations

import json
from pathlib import Path

from tests.task.conftest import RunTask

SETTINGS = ("kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[{M:4}]", "gates.isolate=false")


def lineage(folder: Path) -> list[tuple[str, int | None, float, str]]:
    return [(n["sha256"], n["parent"], n["speedup"], n["rationale"])
            for n in json.loads((folder / "lineage.json").read_text())]


def test_a_replayed_run_has_the_same_lineage(run: RunTask, tmp_path: Path) -> None:
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
