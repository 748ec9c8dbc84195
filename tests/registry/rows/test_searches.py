"""The events of searches: all of a step or nothing, in order, and by one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import asmevo
from asmevo.gates.verdict import Gate, JsonValue, Outcome
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import CandidateStatus, RunStatus
from asmevo.registry.run_lock import RunLock
from tests.registry.tampering import execute

if TYPE_CHECKING:
    from tests.registry.conftest import Scene

FIRST: Mapping[str, JsonValue] = {"number": 0, "kind": "started", "identity": "same"}
BACKENDS = ("sqlite", "postgresql")


def test_events_come_back_in_order(scene: Scene) -> None:
    registry = scene.registry
    registry.record_search(scene.run_id, [FIRST, {"number": 1, "kind": "assigned", "worker": 0}])
    registry.record_search(scene.run_id, [{"number": 2, "kind": "ended", "speedup": 1.0}])
    events = registry.search_events(scene.run_id)
    assert [e["kind"] for e in events] == ["started", "assigned", "ended"]
    [(run, first)] = registry.searches()
    assert run.id == scene.run_id
    assert first == FIRST


def test_a_step_is_recorded_as_a_whole(scene: Scene) -> None:
    """Event, candidate, object and replacement in one transaction."""
    record = scene.candidate("c1")
    built = scene.variant(1)
    scene.registry.record_search(
        scene.run_id, [{"number": 0, "kind": "attempted"}, {"number": 1, "kind": "committed"}],
        candidate=record, assembly="; text\n", built=built, speedup=1.5)
    assert scene.registry.candidate("c1").status is CandidateStatus.COMMITTED
    [replacement] = scene.registry.replacements()
    assert (replacement.object_sha256, replacement.speedup) == (built.sha256, 1.5)
    assert len(scene.registry.search_events(scene.run_id)) == 2


@pytest.mark.parametrize("wrong", ["number", "evidence", "event"])
def test_or_not_at_all(scene: Scene, wrong: str) -> None:
    scene.registry.record_search(scene.run_id, [FIRST])
    record = scene.candidate("c1")
    event: dict[str, object] = {"number": 1, "kind": "attempted"}
    if wrong == "number":
        event["number"] = 0
    elif wrong == "event":
        event["data"] = object()
    else:
        record = scene.candidate("c1", gates=(Gate.G0,), outcome=Outcome.FAIL)
    with pytest.raises(RegistryError):
        scene.registry.record_search(
            scene.run_id, [event], candidate=record,  # type: ignore[list-item]
            assembly="; text\n", built=scene.variant(1), speedup=1.5)
    assert [e["number"] for e in scene.registry.search_events(scene.run_id)] == [0]
    assert scene.registry.lineage(scene.run_id) == ()
    assert scene.registry.replacements() == ()


def test_a_missing_event_is_noticed(scene: Scene) -> None:
    scene.registry.record_search(scene.run_id, [FIRST, {"number": 1, "kind": "a"},
                                                {"number": 2, "kind": "b"}])
    execute(scene.registry, "DELETE FROM search_event WHERE number = 1")
    with pytest.raises(RegistryError, match="event 1 of run"):
        scene.registry.search_events(scene.run_id)


def test_an_unknown_run_has_none(scene: Scene) -> None:
    with pytest.raises(RegistryError, match="no run"):
        scene.registry.search_events("nobody")
    with pytest.raises(RegistryError):
        scene.registry.record_search("nobody", [FIRST])


def test_a_run_goes_on(scene: Scene) -> None:
    scene.registry.finish_run(scene.run_id, RunStatus.INTERRUPTED)
    scene.registry.continue_run(scene.run_id)
    run = scene.registry.run(scene.run_id)
    assert (run.status, run.finished) == (RunStatus.RUNNING, None)



def test_one_process_at_a_run(tmp_path: Path) -> None:
    lock = RunLock(tmp_path, "run")
    assert lock.acquire()
    other = RunLock(tmp_path, "run")
    assert not other.acquire()
    with pytest.raises(RegistryError, match="another process"):
        other.demand("run")
    assert RunLock(tmp_path, "another").acquire()
    lock.release()
    assert other.acquire()


def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time\n"
        "from asmevo.registry.run_lock import RunLock\n"
        "held = RunLock(pathlib.Path(sys.argv[1]), 'run')\n"
        "print(held.acquire(), flush=True)\n"
        "time.sleep(60)\n")
    source = str(Path(asmevo.__file__).parent.parent)
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": source})
    assert child.stdout is not None
    assert child.stdout.readline() == "True\n"
    assert not RunLock(tmp_path, "run").acquire()
    child.kill()
    child.wait()
    child.stdout.close()
    assert RunLock(tmp_path, "run").acquire()
