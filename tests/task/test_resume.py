"""A killed search goes on from the registry with the same command; sweeps on a launcher."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from asmevo.registry.registry import Registry
from asmevo.search.eventlog import read_log
from asmevo.search.events import AnyEvent, Assigned, Attempted, Ended, Resumed, Started
from tests.task.test_command_line import SHORT, command, environment, results, run

SEARCH = (*SHORT[:2], "search.budget.attempts=12", "search.planner.attempts_per_worker=5",
          "oracle.families=[normal]")


def events_of(folder: Path) -> tuple[AnyEvent, ...]:
    return read_log(max(folder.glob("runs/**/events.jsonl")))


def facts(events: tuple[AnyEvent, ...]) -> list[dict[str, Any]]:
    """Events without what differs between two runs of the same: clocks and the run's id."""
    out = []
    for event in events:
        if isinstance(event, Resumed):
            continue
        run_id = events[0].run_id if isinstance(events[0], Started) else ""
        data = json.loads(json.dumps(event.to_json()).replace(run_id, "run"))
        for name in ("number", "seconds", "took", "busy", "gates", "proposing", "attempts_used"):
            data.pop(name, None)
        out.append(data)
    return out


def killed(folder: Path, after: int, *arguments: str) -> None:
    """Start the command and send it SIGKILL once so many attempts are on record."""
    process = subprocess.Popen(
        command(*arguments), cwd=folder, env=environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and process.poll() is None:
        logs = list(folder.glob("runs/**/attempts.jsonl"))
        if logs and max(logs).read_text().count("\n") >= after:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL, "it was over before it could be killed"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    done = run(folder, *SEARCH)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_killed_and_resumed_it_is_the_run_that_it_would_have_been(tmp_path: Path,
                                                                  whole: Path) -> None:
    killed(tmp_path, 4, *SEARCH, "search.resume=true")
    torn = max(tmp_path.glob("runs/**/events.jsonl"))
    assert not any(isinstance(event, Ended) for event in read_log(torn))
    done = run(tmp_path, *SEARCH, "search.resume=true")
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = results(tmp_path)
    (expected,) = results(whole)
    assert result["resumed"] is True
    for name in ("attempts", "duplicates", "commits", "replacement_sha256", "speedup", "verdicts",
                 "stopped"):
        assert result[name] == expected[name], name
    events = events_of(tmp_path)
    assert facts(events) == facts(events_of(whole))
    assert any(isinstance(event, Resumed) for event in events)
    # One run in the registry, with each candidate once, and the log says the same.
    registry = Registry(tmp_path / "registry")
    [record] = registry.runs()
    assert record.id == result["run_id"]
    assert record.status == "completed"
    assert [dict(e) for e in registry.search_events(record.id)] == [
        json.loads(json.dumps(e.to_json())) for e in events]
    candidates = [c.id for c in registry.lineage(record.id)]
    assert sorted(candidates) == sorted(
        e.candidate for e in events if isinstance(e, Attempted) and not e.duplicate)
    registry.close()


def test_a_larger_budget_goes_on_with_a_run_that_had_ended(tmp_path: Path) -> None:
    assert run(tmp_path, *SEARCH, "search.budget.attempts=3").returncode in (0, 1)
    done = run(tmp_path, *SEARCH, "search.budget.attempts=6", "search.resume=true")
    assert done.returncode in (0, 1), done.stderr
    first, second = sorted(results(tmp_path), key=lambda r: int(str(r["attempts"])))
    assert first["run_id"] == second["run_id"]
    assert second["spent"]["attempts"] == 6  # type: ignore[index]
    attempts = [e.attempt for e in events_of(tmp_path) if isinstance(e, Attempted)]
    assert attempts == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("kind", ["attempted", "committed", "replacement"])
def test_a_speedup_that_the_timings_do_not_bear_out(tmp_path: Path, whole: Path,
                                                    kind: str) -> None:
    """Whoever alters it would have a search build on what is no faster."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    with closing(sqlite3.connect(tmp_path / "registry" / "asmevo.db")) as connection:
        connection.execute(
            "UPDATE replacement SET speedup = 8.5" if kind == "replacement" else
            "UPDATE search_event SET data = json_set(data, '$.speedup', 8.5) WHERE id = (SELECT "
            f"min(id) FROM search_event WHERE kind = '{kind}' AND data ->> 'speedup' IS NOT NULL)")
        connection.commit()
    [result] = results(whole)
    done = run(tmp_path, *SEARCH, "search.budget.attempts=14",
               f"search.resume={result['run_id']}")
    assert done.returncode == 2, done.stdout + done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "of the run has a speedup of" in last
    assert last.endswith("the registry was altered")


def test_what_cannot_be_resumed_is_said_in_one_sentence(whole: Path) -> None:
    (result,) = results(whole)
    for arguments, sentence in (
            (("search.resume=nonsense",), "no run 'nonsense'"),
            ((f"search.resume={result['run_id']}", "search.seed=7"), "another configuration"),
    ):
        done = run(whole, *SEARCH, *arguments)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("hydra_plugins.hydra_submitit_launcher") is None,
                    reason="hydra-submitit-launcher is not installed: pip install "
                           "'asmevo[submitit]'")
def test_a_sweep_runs_on_a_submitit_launcher(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "hydra/launcher=submitit_local", "search.seed=1,2", *SHORT[:2],
               "search.budget.attempts=2", "oracle.families=[normal]")
    assert done.returncode == 0, done.stderr
    found = results(tmp_path)
    assert len(found) == 2
    assert len({str(result["run_id"]) for result in found}) == 2
    assert list(tmp_path.glob("runs/**/.submitit")), "they ran in this process"


def test_assignments_carry_seeds_of_their_own(whole: Path) -> None:
    seeds = [e.seed for e in events_of(whole) if isinstance(e, Assigned)]
    assert len(set(seeds)) == len(seeds) > 1
