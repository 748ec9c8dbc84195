"""The controller against scripted workers: what it commits, counts and when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody, Line
from asmevo.device.device import Timing, TimingSource
from asmevo.gates.commit import CommitGate
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.propose.proposal import Direction, Proposal
from asmevo.search.attempt import Assignment, Attempt, Report
from asmevo.search.budget import Budget
from asmevo.search.controller import Controller
from asmevo.search.lineage import Lineage, Node, Resources
from asmevo.search.planner import GreedyPlanner, Planner, TeamPlanner

RESOURCES = Resources(8, 16, 0)


def assembly(*lines: str) -> Assembly:
    return Assembly("0" * 64, (KernelBody("k", tuple(Line(text) for text in lines)),))


def root() -> Node:
    return Node(0, None, assembly("s_endpgm"), b"", "0" * 64, 1.0, RESOURCES)


def attempt(
    assignment: Assignment, mark: str, speedup: float | None, *, fails: Gate | None = None
) -> Attempt:
    """A candidate that fails at a gate, or passes G0 to G3 with a speedup."""
    gates = [Gate.G0, Gate.G1, Gate.G2, Gate.G2, Gate.G2, Gate.G3]
    verdicts: list[Verdict] = []
    for gate in gates:
        outcome = Outcome.FAIL if gate is fails else Outcome.PASS
        verdicts.append(Verdict(gate, outcome, "scripted", "scripted"))
        if outcome is Outcome.FAIL:
            break
    timings: tuple[tuple[Timing, Timing], ...] = ()
    if speedup is not None:
        timings = ((
            Timing("d", (10.0,), TimingSource.MODELLED, "scripted"),
            Timing("d", (10.0 / speedup,), TimingSource.MODELLED, "scripted"),
        ),)
    directions = assignment.directions or tuple(Direction)
    proposal = Proposal((Edit("k", 0, 0, (f"s_nop {mark}",), "why"),), "rule", directions[0], "why")
    return Attempt(
        assignment.worker, assignment.base.number, proposal, mark, assembly(mark),
        tuple(verdicts), code=b"x", sha256=mark.rjust(64, "0"), speedup=speedup, timings=timings,
        resources=RESOURCES,
    )


@dataclass
class Script:
    """Plays one list of (mark, speedup, failing gate) for each assignment it is given."""

    acts: list[list[tuple[str, float | None, Gate | None]]]
    asked: list[Assignment] = field(default_factory=list)
    faults: set[int] = field(default_factory=set)

    def run(self, assignments: Sequence[Assignment]) -> Iterator[Report]:
        for assignment in assignments:
            self.asked.append(assignment)
            if len(self.asked) in self.faults:
                yield Report(assignment, (), False, fault="killed")
                continue
            act = self.acts.pop(0) if self.acts else []
            attempts = tuple(attempt(assignment, m, s, fails=g) for m, s, g in act)
            yield Report(assignment, attempts, exhausted=not act)

    def close(self) -> None:
        """Nothing to close."""


class Watcher:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, bool]] = []

    def attempted(self, attempt: Attempt, verdicts: tuple[Verdict, ...], node: Node | None) -> None:
        self.events.append((attempt.fingerprint, verdicts[-1].gate.value, node is not None))


def search(
    script: Script, *, planner: Planner | None = None, attempts: int = 100
) -> tuple[Controller, Watcher, str]:
    watcher = Watcher()
    controller = Controller(
        Lineage(root()), CommitGate(), planner or GreedyPlanner(), script,
        Budget(attempts=attempts), watcher,
    )
    return controller, watcher, controller.run()


def test_commits_what_beats_the_best_by_more_than_noise() -> None:
    script = Script([[("1", 1.10, None)], [("2", 1.101, None)], [("3", 1.2, None)]])
    controller, watcher, why = search(script)
    assert why == "exhausted"
    assert [n.speedup for n in controller.lineage] == [1.0, 1.10, 1.2]
    assert watcher.events == [("1", "G4", True), ("2", "G4", False), ("3", "G4", True)]
    assert controller.lineage.best.parent == 1


def test_a_failing_candidate_never_reaches_the_commit_gate() -> None:
    script = Script([[("1", None, Gate.G0), ("2", None, Gate.G1), ("3", 9.0, Gate.G2)]])
    controller, watcher, _ = search(script)
    assert len(controller.lineage) == 1
    assert [gate for _, gate, _ in watcher.events] == ["G0", "G1", "G2"]
    counts = controller.tally.verdicts
    assert counts[Gate.G4].total() == 0
    assert counts[Gate.G2] == {Outcome.FAIL: 1}
    assert counts[Gate.G0] == {Outcome.FAIL: 1, Outcome.PASS: 2}


def test_repeats_of_equality_count_as_one_candidate() -> None:
    controller, _, _ = search(Script([[("1", 1.5, None)]]))
    assert controller.tally.verdicts[Gate.G2] == {Outcome.PASS: 1}


def test_the_same_candidate_from_two_workers_is_judged_once() -> None:
    script = Script([[("1", 1.1, None)], [("1", 1.1, None)]])
    controller, watcher, _ = search(script, planner=TeamPlanner(workers=2))
    assert controller.tally.attempts == 1
    assert controller.tally.duplicates == 1
    assert len(watcher.events) == 1


def test_attempts_bound_the_search() -> None:
    script = Script([[(str(i), None, Gate.G1)] for i in range(50)])
    controller, _, why = search(script, attempts=7)
    assert why == "attempts"
    assert controller.tally.attempts == 7


def test_seconds_bound_the_search() -> None:
    ticks = iter(range(0, 10_000, 40))
    script = Script([[(str(i), None, Gate.G1)] for i in range(50)])
    controller = Controller(
        Lineage(root()), CommitGate(), GreedyPlanner(), script,
        Budget(attempts=1000, seconds=100.0, clock=lambda: float(next(ticks))), Watcher(),
    )
    assert controller.run() == "seconds"
    assert 0 < controller.tally.attempts < 10


def test_seen_candidates_are_passed_on() -> None:
    script = Script([[("1", 1.1, None)], [("2", None, Gate.G1)]])
    search(script)
    assert script.asked[1].seen == {"1"}
    assert script.asked[2].failures[0].gate == "G1"


def test_a_lost_worker_costs_its_assignment_only() -> None:
    script = Script([[("1", 1.3, None)]], faults={1})
    controller, _, why = search(script)
    assert controller.tally.faults == 1
    assert controller.lineage.best.speedup == 1.3
    assert why == "exhausted"


def test_workers_that_always_die_use_up_the_budget() -> None:
    script = Script([], faults=set(range(1000)))
    controller, _, why = search(script, attempts=5)
    assert why == "attempts"
    assert controller.tally.faults == 5


def test_team_gives_each_worker_another_direction() -> None:
    script = Script([])
    search(script, planner=TeamPlanner(workers=4))
    first_round = script.asked[:4]
    assert len({a.directions for a in first_round}) == 4
    assert [a.worker for a in first_round] == [0, 1, 2, 3]
    assert all(len(a.directions) == 1 for a in first_round)


def test_team_moves_on_when_a_direction_is_exhausted() -> None:
    script = Script([])
    _, _, why = search(script, planner=TeamPlanner(workers=4))
    assert why == "exhausted"
    asked = [(a.base.number, a.directions[0]) for a in script.asked]
    assert sorted(asked) == sorted((0, d) for d in Direction)


def test_team_goes_back_to_earlier_nodes() -> None:
    """After a commit, directions open on the best node come first, then those left elsewhere."""
    script = Script([[("1", 1.5, None)]])
    search(script, planner=TeamPlanner(workers=1))
    bases = [a.base.number for a in script.asked]
    assert bases[0] == 0
    assert bases[1:6] == [1] * 5
    assert set(bases[6:]) == {0}


def test_lineage_refuses_orphans() -> None:
    lineage = Lineage(root())
    with pytest.raises(ValueError, match="no parent"):
        lineage.add(Node(1, 5, assembly("s_endpgm"), b"", "0" * 64, 1.1, RESOURCES))
    with pytest.raises(ValueError, match="would not be"):
        lineage.add(Node(3, 0, assembly("s_endpgm"), b"", "0" * 64, 1.1, RESOURCES))


def test_path_leads_from_the_root() -> None:
    script = Script([[("1", 1.1, None)], [("2", 1.2, None)]])
    controller, _, _ = search(script)
    assert [n.number for n in controller.lineage.path(controller.lineage.best)] == [0, 1, 2]
