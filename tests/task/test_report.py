"""The page of a search is made from what is stored of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from asmevo.registry.errors import RegistryError
from asmevo.registry.registry import Registry
from asmevo.report import version_profile
from asmevo.report.result import Result, Status
from asmevo.report.search_page import search_page
from asmevo.report.stored_run import StoredRunError, load_run
from asmevo.report.version_profile import ORIGINAL, WINNER
from asmevo.task import search_report
from asmevo.task.session import ConfigError

RunTask = Callable[..., Result]
SHORT = ("task=optimize", "kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[]",
         "oracle.families=[normal]")


def test_a_search_leaves_a_page_that_can_be_made_again(run: RunTask, tmp_path: Path) -> None:
    done = run(*SHORT, "search.budget.attempts=8")
    folder = tmp_path / "run"
    assert done.status is Status.COMMITTED
    assert done.report == str(folder / "report.html")
    page = (folder / "report.html").read_text()
    assert f"{done.speedup_again:.4f}x" in page
    assert str(done.replacement_sha256) in page
    profiles = version_profile.read(folder)
    assert profiles[ORIGINAL].sha256 == done.original_sha256
    assert profiles[WINNER].sha256 == done.replacement_sha256
    assert profiles[WINNER].cycles < profiles[ORIGINAL].cycles
    (timing,) = done.timings
    assert timing["original_us"] / timing["replacement_us"] == pytest.approx(done.speedup)
    assert timing["again_speedup"] == pytest.approx(done.speedup_again)

    # From the folder alone, from an id, and from the registry when the folder is gone.
    registry = Registry(tmp_path / "registry")
    again = search_page(load_run(str(folder), registry, tmp_path))
    assert again == search_page(load_run(str(done.run_id), registry, tmp_path))
    kept = tmp_path / "kept"
    shutil.move(folder, kept)
    moved = load_run(str(kept), registry, tmp_path)
    assert moved.state.commits == done.commits
    lost = load_run(str(done.run_id), registry, tmp_path / "nowhere")
    assert lost.folder is None
    assert lost.state.best is not None
    assert lost.state.best.speedup == done.speedup
    assert {g: dict(c) for g, c in lost.state.verdicts.items()} == {
        gate: {o: n for o, n in counts.items() if n} for gate, counts in done.verdicts.items()}
    assert any("run folder is gone" in sentence for sentence in lost.missing)
    assert "instructions became" in search_page(lost)
    killed = tmp_path / "killed"
    killed.mkdir()
    shutil.copy(kept / "events.jsonl", killed)
    cut = load_run(str(killed), registry, tmp_path)
    assert cut.state.commits == done.commits
    assert any("left no result" in sentence for sentence in cut.missing)
    assert "instructions became" in search_page(cut)
    (killed / "result.json").write_text(json.dumps(
        {"schema": "asmevo.result/1", "task": "optimize", "run_id": None}))
    assert load_run(str(killed), registry, tmp_path).state.commits == done.commits

    result = run("task=report", f"run={kept}", f"output={tmp_path}/copy.html")
    assert result.status is Status.REPORTED
    assert (tmp_path / "copy.html").read_bytes() == (kept / "report.html").read_bytes()
    result = run("task=report", f"run={done.run_id}")
    assert result.details is not None
    assert Path(result.details["page"]).is_file()


def test_a_page_that_cannot_be_made_does_not_cost_the_run(
        run: RunTask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> str:
        raise ValueError("no page today")

    monkeypatch.setattr(search_report, "search_page", broken)
    result = run(*SHORT, "search.budget.attempts=2")
    assert result.report is None
    assert result.attempts == 2
    assert "no page today" in caplog.text


def test_an_interrupt_while_the_page_is_made_keeps_the_result(
        run: RunTask, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(search_report, "search_page", interrupted)
    result = run(*SHORT, "search.budget.attempts=2")
    assert result.status is Status.INTERRUPTED
    assert result.attempts == 2
    assert result.speedup_again is not None


def test_what_is_no_search(run: RunTask, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs run="):
        run("task=report")
    with pytest.raises(StoredRunError, match="no run folder"):
        run("task=report", f"run={tmp_path}/nothing")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "events.jsonl").touch()
    with pytest.raises(StoredRunError, match="neither a result nor"):
        run("task=report", f"run={tmp_path}/empty")
    other = tmp_path / "other"
    other.mkdir()
    (other / "result.json").write_text(json.dumps(
        {"schema": "asmevo.result/1", "task": "verify"}))
    with pytest.raises(StoredRunError, match="task=verify, not a search"):
        run("task=report", f"run={other}")
    Registry(tmp_path / "registry").check_writable()
    with pytest.raises(RegistryError, match="20260101"):
        run("task=report", "run=20260101T000000Z-00000000")
