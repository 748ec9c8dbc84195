"""The same workers on a Ray cluster, which is started here."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from asmevo.search.events import Attempted, Fault
from asmevo.search.planner import TeamPlanner
from asmevo.search.ray_executor import RayError, RayExecutor
from tests.search.fakes import FakeBench, controller, facts, lineage_of
from tests.search.memory_journal import MemoryJournal

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'asmevo[ray]'")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """One cluster for all tests: each would take seconds to start."""
    root = str(Path(__file__).parent.parent.parent)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False,
             runtime_env={"env_vars": {"PYTHONPATH": _path(root)}})
    yield
    ray.shutdown()


def _path(root: str) -> str:
    import os

    return os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])


def test_a_cluster_gives_the_same_lineage_as_one_process() -> None:
    bench = functools.partial(FakeBench, clashes=((0, 5), (3, 8)))
    runs = []
    for inline in (True, False):
        executor = None if inline else RayExecutor(bench, 3)
        made = controller(bench(), executor=executor, planner=TeamPlanner(attempts_per_worker=6),
                          workers=3, attempts=50, seed=5)
        try:
            assert made.run() == "attempts"
        finally:
            made.executor.close()
        assert isinstance(made.journal, MemoryJournal)
        runs.append((facts(made.journal.events), lineage_of(made)))
    assert runs[0] == runs[1]
    assert len(runs[0][1]) > 3


def test_a_killed_actor_costs_one_attempt(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    alive.touch()
    bench = functools.partial(FakeBench, poison=6, alive=alive)
    executor = RayExecutor(bench, 2)
    planner = TeamPlanner(attempts_per_worker=8, together=False)
    made = controller(bench(), executor=executor, planner=planner, workers=2, attempts=40, seed=1)
    try:
        assert made.run() == "attempts"
    finally:
        executor.close()
    assert isinstance(made.journal, MemoryJournal)
    faults = [e for e in made.journal.events if isinstance(e, Fault)]
    attempts = [e for e in made.journal.events if isinstance(e, Attempted)]
    assert faults
    assert all("actor" in fault.reason for fault in faults)
    assert len(faults) + len(attempts) == 40
    marks = [e.fingerprint for e in attempts if not e.duplicate]
    assert len(marks) == len(set(marks))


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def nowhere(**_: object) -> None:
        raise ConnectionError("nobody listens")

    monkeypatch.setattr(ray, "init", nowhere)
    with pytest.raises(RayError, match=r"no Ray cluster at 127\.0\.0\.1:1"):
        RayExecutor(FakeBench, 1, address="127.0.0.1:1")


def test_ray_is_there() -> None:
    assert importlib.util.find_spec("ray") is not None
