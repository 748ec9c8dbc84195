"""The controller on a kernel that costs what its lines say: commits, counts, and its end."""

from __future__ import annotations

import time

import pytest

from asmevo.gates.commit import CommitGate
from asmevo.gates.verdict import Gate, Outcome
from asmevo.propose.proposal import Direction
from asmevo.search.budget import Budget
from asmevo.search.controller import Composing, Controller
from asmevo.search.events import Assigned, Attempted, Committed, Ended, Fault, Finished, Started
from asmevo.search.planner import GreedyPlanner, TeamPlanner
from asmevo.search.supervision import Thresholds
from tests.search.fakes import FakeBench, controller, costs_of, facts, lineage_of, root, state
from tests.search.memory_journal import MemoryJournal

OFF = Thresholds(no_progress=10_000, repeats=1.0, window=10_000, faults=10_000, levels=0)


def events(made: Controller) -> list[object]:
    assert isinstance(made.journal, MemoryJournal)
    return list(made.journal.events)


def test_commits_what_beats_the_best_by_more_than_noise() -> None:
    made = controller(composing=Composing(parts=0))
    made.run()
    nodes = list(made.state.lineage)
    assert len(nodes) > 3
    for node in nodes[1:]:
        parent = nodes[node.parent or 0]
        assert node.assembly == parent.assembly.apply(node.edits)
        assert node.speedup == 1000 / sum(costs_of(node.assembly))
    best = 1.0
    for node in nodes[1:]:
        assert node.speedup >= 1.002 * best
        best = node.speedup


def test_every_event_is_durable_before_anything_is_made_of_it() -> None:
    class Late(MemoryJournal):
        made: Controller

        def write(self, events, attempt=None, node=None):  # type: ignore[no-untyped-def]
            assert self.made.state.events == events[0].number
            super().write(events, attempt, node)

    journal = Late()
    made = controller(journal=journal)
    journal.made = made
    made.run()
    assert [event.number for event in journal.events] == list(range(len(journal.events)))
    assert isinstance(journal.events[0], Started)
    assert isinstance(journal.events[-1], Ended)


def test_a_failing_candidate_never_reaches_the_commit_gate() -> None:
    made = controller(FakeBench(floor=1000))
    made.run()
    assert len(made.state.lineage) == 1
    counts = made.state.tally.verdicts
    assert counts[Gate.G4].total() == 0
    assert counts[Gate.G0][Outcome.PASS] == counts[Gate.G2][Outcome.FAIL] > 0


def test_attempts_bound_the_search() -> None:
    made = controller(attempts=7)
    assert made.run() == "attempts"
    assert made.state.budget.used == 7


def test_seconds_bound_the_search() -> None:
    ticks = iter(range(0, 1_000_000, 2))
    budget = Budget(attempts=1000, seconds=100.0, clock=lambda: float(next(ticks)))
    made = controller(of=state(root(), budget=budget))
    assert made.run() == "seconds"
    assert 0 < made.state.tally.attempts < 50


@pytest.mark.parametrize(("bound", "why"), [({"tokens": 300}, "tokens"), ({"cost": 3.0}, "cost")])
def test_what_proposing_costs_bounds_the_search(bound: dict[str, float], why: str) -> None:
    budget = Budget(attempts=1000, seconds=600.0, **bound)  # type: ignore[arg-type]
    made = controller(FakeBench(tokens=10), of=state(root(), budget=budget))
    assert made.run() == why
    spent = sum(e.tokens for e in events(made) if isinstance(e, Attempted | Finished))
    assert 300 <= spent == budget.spent.tokens < 400


def test_nothing_left_ends_the_search() -> None:
    bench = FakeBench(limit=0)
    made = controller(bench, of=state(root(), thresholds=OFF))
    assert made.run() == "exhausted"
    assert len(bench.asked) == 1


def test_the_same_seed_gives_the_same_events_and_another_seed_others() -> None:
    runs = []
    for seed in (1, 1, 2):
        made = controller(seed=seed, planner=TeamPlanner(), workers=4, attempts=60)
        made.run()
        runs.append(facts(events(made)))  # type: ignore[arg-type]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_the_same_candidate_from_two_workers_is_counted_but_judged_once() -> None:
    made = controller(FakeBench(costs=(40,) * 5), planner=TeamPlanner(policies=("best",)),
                      workers=4, attempts=80)
    made.run()
    seen = [e.fingerprint for e in events(made) if isinstance(e, Attempted) and not e.duplicate]
    assert len(seen) == len(set(seen)) == made.state.tally.attempts


def test_evidence_carries_what_was_learnt() -> None:
    bench = FakeBench()
    made = controller(bench, planner=GreedyPlanner(attempts_per_worker=8))
    made.run()
    assert len({a.seed for a in bench.asked}) == len(bench.asked)
    last = bench.asked[-1]
    assert last.experience["fake"].proposed > 10
    assert last.experience["fake"].gain > 0.0
    assert set(last.rules) >= {"cheaper-1", "cheaper-2"}
    assert any("helped" in sentence for sentence in last.insights)
    assert last.failures
    assert not bench.asked[0].experience


def test_experience_adds_up_to_the_speedup() -> None:
    made = controller(attempts=60)
    made.run()
    total = 1.0
    for name, experience in made.state.tally.experience().items():
        total *= 2.718281828459045 ** experience.gain
        assert name in ("fake", "integrator")
    assert total == pytest.approx(made.state.lineage.best.speedup)


def test_team_gives_each_worker_another_direction() -> None:
    made = controller(planner=TeamPlanner(together=False), workers=4)
    made.run()
    first = [e for e in events(made) if isinstance(e, Assigned)][:4]
    assert [e.worker for e in first] == [0, 1, 2, 3]
    assert len({e.directions for e in first}) == 4
    assert all(len(e.directions) == 1 for e in first)


def test_work_is_stolen_when_a_direction_is_exhausted() -> None:
    """Nothing is proposed at all, so all five directions run dry, the fifth by a free worker."""
    made = controller(FakeBench(limit=0), planner=TeamPlanner(together=False), workers=4,
                      of=state(root(), thresholds=OFF))
    assert made.run() == "exhausted"
    asked = [(e.base, e.directions[0]) for e in events(made) if isinstance(e, Assigned)]
    assert sorted(asked) == sorted((0, d.value) for d in Direction)


def test_a_team_starts_from_different_nodes_once_there_are_some() -> None:
    made = controller(planner=TeamPlanner(), workers=4, attempts=100)
    made.run()
    at: dict[int, int] = {}
    apart = 0
    for event in events(made):
        if isinstance(event, Assigned) and not event.parts:
            at[event.worker] = event.base
            apart = max(apart, len(set(at.values())))
    assert apart > 1
    assert {e.policy for e in events(made) if isinstance(e, Assigned)} >= {"best", "diverse"}


def test_an_error_in_a_worker_costs_one_attempt() -> None:
    class Broken(FakeBench):
        def judge(self, assignment, proposal, assembly, mark):  # type: ignore[no-untyped-def]
            if len(self.judged) == 3:
                self.judged.append("")
                raise RuntimeError("out of luck")
            return super().judge(assignment, proposal, assembly, mark)

    bench = Broken()
    made = controller(bench, attempts=20)
    assert made.run() == "attempts"
    [fault] = [e for e in events(made) if isinstance(e, Fault)]
    assert fault.reason == "RuntimeError: out of luck"
    assert not fault.abandoned
    assert made.state.budget.used == 20
    assert len(bench.judged) == 20


def test_workers_that_always_fail_end_the_search() -> None:
    class Broken(FakeBench):
        def propose(self, assignment):  # type: ignore[no-untyped-def]
            raise RuntimeError("no proposer")
            yield

    made = controller(Broken(), attempts=1000)
    assert made.run() == "faults"
    assert made.state.tally.faults == 20


def test_proposing_is_counted_where_the_budget_cuts_an_assignment_short() -> None:
    """The end of that assignment, which the search does not wait for, is not where it is told."""
    class Slow(FakeBench):
        def propose(self, assignment):  # type: ignore[no-untyped-def]
            source = super().propose(assignment)
            while True:
                time.sleep(0.02)
                yield next(source)

    made = controller(Slow(), attempts=5, gate=CommitGate(epsilon=9.0))
    assert made.run() == "attempts"
    assert not [e for e in events(made) if isinstance(e, Finished)]
    attempts = [e for e in events(made) if isinstance(e, Attempted)]
    assert all(e.proposing >= 0.02 for e in attempts)
    assert made.state.tally.proposing_seconds == pytest.approx(sum(e.proposing for e in attempts))


def test_proposing_that_led_to_no_attempt_is_counted_once() -> None:
    class Repeats(FakeBench):
        def propose(self, assignment):  # type: ignore[no-untyped-def]
            first = next(super().propose(assignment))
            yield first
            time.sleep(0.05)
            yield first

    made = controller(Repeats(), of=state(root(), thresholds=OFF), gate=CommitGate(epsilon=9.0))
    made.run()
    [attempt] = [e for e in events(made) if isinstance(e, Attempted)]
    first = next(e for e in events(made) if isinstance(e, Finished))
    assert attempt.proposing < 0.05 <= first.proposing


def test_ctrl_c_is_an_end_that_is_recorded() -> None:
    class Interrupted(FakeBench):
        def judge(self, assignment, proposal, assembly, mark):  # type: ignore[no-untyped-def]
            if len(self.judged) == 5:
                raise KeyboardInterrupt
            return super().judge(assignment, proposal, assembly, mark)

    made = controller(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        made.run()
    last = events(made)[-1]
    assert isinstance(last, Ended)
    assert last.why == "interrupted"
    assert last.attempts == 5


def test_commits_name_their_place_in_the_tree() -> None:
    made = controller(attempts=40)
    made.run()
    for event in events(made):
        if isinstance(event, Committed):
            node = made.state.lineage[event.node]
            assert (event.parent, event.sha256, event.speedup) == (
                node.parent, node.sha256, node.speedup)
            assert event.candidate == node.candidate
            assert event.windows == node.windows
    assert lineage_of(made)[0] == (None, 1.0, (40,) * 25)
