"""Worker processes: killed, hung, superseded, and always the same lineage."""

from __future__ import annotations

import functools
import os
import signal
import time
from pathlib import Path

import pytest

from asmevo.gates.commit import CommitGate
from asmevo.search.attempt import Attempt, Finish, Lost
from asmevo.search.events import Attempted, Ended, Fault
from asmevo.search.planner import GreedyPlanner, TeamPlanner
from asmevo.search.processes import ProcessExecutor
from tests.search.fakes import (
    FakeBench,
    controller,
    costs_of,
    facts,
    lineage_of,
)
from tests.search.memory_journal import MemoryJournal


@pytest.fixture
def alive(tmp_path: Path) -> Path:
    path = tmp_path / "alive"
    path.touch()
    return path


def test_processes_and_inline_give_the_same_events() -> None:
    bench = functools.partial(FakeBench, clashes=((0, 5), (3, 8)), slow=7)
    runs = []
    for inline in (True, False):
        executor = None if inline else ProcessExecutor(bench, 3)
        made = controller(bench(), executor=executor, planner=TeamPlanner(attempts_per_worker=6),
                          workers=3, attempts=70, seed=5)
        try:
            made.run()
        finally:
            made.executor.close()
        assert isinstance(made.journal, MemoryJournal)
        runs.append((facts(made.journal.events), lineage_of(made)))
    assert runs[0] == runs[1]
    assert len(runs[0][1]) > 3


def test_a_killed_worker_costs_one_attempt_and_nobody_elses(alive: Path) -> None:
    """Each candidate that changes line 6 kills the process that judges it."""
    bench = functools.partial(FakeBench, poison=6, alive=alive)
    executor = ProcessExecutor(bench, 3)
    planner = TeamPlanner(attempts_per_worker=8, together=False)
    made = controller(bench(), executor=executor, planner=planner, workers=3, attempts=60, seed=1)
    try:
        assert made.run() == "attempts"
    finally:
        executor.close()
    assert isinstance(made.journal, MemoryJournal)
    faults = [e for e in made.journal.events if isinstance(e, Fault)]
    attempts = [e for e in made.journal.events if isinstance(e, Attempted)]
    assert faults
    assert all("signal 9" in fault.reason for fault in faults)
    assert len(faults) + len(attempts) == 60
    # No candidate is judged twice: what a worker had done before it died is not lost.
    marks = [e.fingerprint for e in attempts if not e.duplicate]
    assert len(marks) == len(set(marks))
    assert made.state.lineage.best.speedup > 1.03
    assert costs_of(made.state.lineage.best.assembly)[6] == 40


def test_sigkill_from_outside(alive: Path) -> None:
    bench = functools.partial(FakeBench, slow=0, costs=(40,) * 5, steps=(1,))
    executor = ProcessExecutor(bench, 1)
    try:
        # Nothing is ever committed, so that the assignment goes on.
        made = controller(bench(), executor=executor, gate=CommitGate(epsilon=9.0))
        state = made.state
        made.state.budget.start()
        made._emit(made.started)
        made._assign()
        flight = state.flights[0]
        first = executor.take(0, 30.0)
        assert isinstance(first, Attempt)
        made._take(flight, first)
        os.kill(executor.pids()[0], signal.SIGKILL)
        steps = []
        while not isinstance(step := executor.take(0, 30.0), Lost | Finish):
            assert step is not None
            steps.append(step)
            made._take(flight, step)
        assert isinstance(step, Lost)
        made._take(flight, step)
        assert made.state.tally.faults == 1
        assert state.budget.used == 2 + len(steps)
        again = executor.take(0, 30.0)
        assert isinstance(again, Attempt)
        known = {first.fingerprint, *(s.fingerprint for s in steps if isinstance(s, Attempt))}
        assert again.fingerprint not in known
    finally:
        executor.close()


class Hanging(FakeBench):
    """Judging the first candidate of line 2 never ends."""

    def judge(self, assignment, proposal, assembly, mark):  # type: ignore[no-untyped-def]
        if costs_of(assembly)[2] != 40 and self.alive is not None and self.alive.exists():
            self.alive.unlink()
            time.sleep(3600)
        return super().judge(assignment, proposal, assembly, mark)


def test_a_worker_that_hangs_is_ended(alive: Path) -> None:
    bench = functools.partial(Hanging, alive=alive)
    executor = ProcessExecutor(bench, 2)
    made = controller(bench(), executor=executor, planner=TeamPlanner(attempts_per_worker=6),
                      workers=2, attempts=30, patience=8.0)
    try:
        assert made.run() == "attempts"
    finally:
        executor.close()
    assert isinstance(made.journal, MemoryJournal)
    [fault] = [e for e in made.journal.events if isinstance(e, Fault)]
    assert "gave nothing" in fault.reason
    assert isinstance(made.journal.events[-1], Ended)


def failing() -> FakeBench:
    raise RuntimeError("no device")


def test_workers_that_cannot_start_end_the_search() -> None:
    executor = ProcessExecutor(failing, 1)
    made = controller(executor=executor, planner=GreedyPlanner(), attempts=3)
    try:
        assert made.run() == "attempts"
    finally:
        executor.close()
    assert made.state.tally.faults == 3


def test_closing_leaves_no_process_behind() -> None:
    bench = functools.partial(FakeBench, slow=0, costs=(40,) * 5)
    executor = ProcessExecutor(bench, 2)
    made = controller(bench(), executor=executor, planner=TeamPlanner(), workers=2)
    made.state.budget.start()
    made._emit(made.started)
    made._assign()
    pids = executor.pids()
    assert len(pids) == 2
    executor.close()
    for pid in pids.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_results_may_be_taken_as_they_come() -> None:
    """With another order of results nothing is lost or counted twice, and no worker is left out."""
    bench = functools.partial(FakeBench, slow=7)
    executor = ProcessExecutor(bench, 3)
    made = controller(bench(), executor=executor, planner=TeamPlanner(attempts_per_worker=6),
                      workers=3, attempts=60, seed=5)
    made.arrival = True
    try:
        assert made.run() == "attempts"
    finally:
        executor.close()
    assert isinstance(made.journal, MemoryJournal)
    attempts = [e for e in made.journal.events if isinstance(e, Attempted)]
    assert [e.attempt for e in attempts] == list(range(1, 61))
    assert {e.worker for e in attempts} == {0, 1, 2}
    assert not made.state.tally.faults
    marks = [e.fingerprint for e in attempts if not e.duplicate]
    assert len(marks) == len(set(marks))
