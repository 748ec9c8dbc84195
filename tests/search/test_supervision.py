"""Each rule of supervision, provoked: redirect, backtrack, escalate, give up."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.gates.commit import CommitGate
from asmevo.propose.proposal import Direction, Proposal, Proposals
from asmevo.search.attempt import Assignment
from asmevo.search.controller import Composing
from asmevo.search.events import (
    AnyEvent,
    Assigned,
    Attempted,
    Escalated,
    Fault,
    Finished,
    Redirected,
)
from asmevo.search.planner import GreedyPlanner, TeamPlanner
from asmevo.search.supervision import SupervisionError, Thresholds
from tests.search.fakes import FakeBench, controller, costs_of, root, state
from tests.search.memory_journal import MemoryJournal
from tests.search.test_composition import edit

NEVER = CommitGate(epsilon=9.0)


def quiet(**loud: Any) -> Thresholds:
    """Thresholds that nothing reaches, but for those given."""
    return Thresholds(**{"no_progress": 10_000, "repeats": 1.0, "window": 10_000,
                         "faults": 10_000, "levels": 0, **loud})


def events_of(bench: FakeBench, thresholds: Thresholds, *, attempts: int = 60, workers: int = 1,
              gate: CommitGate | None = None, team: bool = False) -> tuple[AnyEvent, ...]:
    made = controller(
        bench, of=state(root(bench.costs), attempts=attempts, thresholds=thresholds), gate=gate,
        workers=workers, composing=Composing(parts=0),
        planner=TeamPlanner(attempts_per_worker=6, together=False) if team else GreedyPlanner(
            attempts_per_worker=8))
    made.run()
    assert isinstance(made.journal, MemoryJournal)
    return made.journal.events


def test_without_a_reason_nothing_is_redirected() -> None:
    events = events_of(FakeBench(), quiet(), gate=NEVER)
    assert not [e for e in events if isinstance(e, Redirected | Escalated)]


def test_no_progress_redirects() -> None:
    thresholds = quiet(no_progress=20)
    events = events_of(FakeBench(), thresholds, gate=NEVER)
    first = next(e for e in events if isinstance(e, Redirected))
    before = [e for e in events[:first.number] if isinstance(e, Attempted)]
    assert (first.reason, first.action, first.count) == ("no-progress", "change-target", 20)
    assert len(before) == 20
    assert any("candidates" in sentence for sentence in first.summary)


def test_progress_puts_a_redirect_off() -> None:
    """Commits every few attempts: the same threshold is never reached."""
    thresholds = quiet(no_progress=20)
    events = events_of(FakeBench(steps=(1, 2)), thresholds, attempts=40)
    assert not [e for e in events if isinstance(e, Redirected)]


def test_repeats_redirect() -> None:
    class Repeating(FakeBench):
        def propose(self, assignment: Assignment) -> Proposals:
            for _ in range(30):
                yield Proposal((edit(0, 1, "s_nop 39"),), "again", Direction.LATENCY_HIDING, "")

    thresholds = quiet(window=10, repeats=0.8, levels=1)
    events = events_of(Repeating(), thresholds, gate=NEVER)
    reasons = [e.reason for e in events if isinstance(e, Redirected)]
    assert reasons
    assert set(reasons) == {"repeats"}
    assert sum(e.duplicates for e in events if isinstance(e, Finished)) >= 29


def test_lost_workers_redirect() -> None:
    class Broken(FakeBench):
        def judge(self, assignment, proposal, assembly, mark):  # type: ignore[no-untyped-def]
            if len(self.judged) % 3 == 2:
                self.judged.append("")
                raise RuntimeError("no device")
            return super().judge(assignment, proposal, assembly, mark)

    thresholds = quiet(window=10, repeats=1.0, faults=3)
    events = events_of(Broken(), thresholds, gate=NEVER)
    first = next(e for e in events if isinstance(e, Redirected))
    assert first.reason == "faults"
    assert sum(isinstance(e, Fault) for e in events[:first.number]) == 3


def test_exhausted_hypotheses_are_marked_and_told() -> None:
    """Nothing but the memory direction ever helps; the others are given up on the root."""

    class OneWay(FakeBench):
        def propose(self, assignment: Assignment) -> Proposals:
            now = costs_of(assignment.base.assembly)
            for count, proposal in enumerate(super().propose(assignment)):
                index = proposal.edits[0].start
                if index % 5 == 3:
                    yield proposal
                else:
                    worse = edit(index, index + 1, f"s_nop {now[index] + 1 + count}")
                    yield Proposal((worse,), "worse", proposal.direction, "")

    bench = OneWay(limit=400)
    thresholds = quiet(no_progress=40, hypothesis=3)
    events = events_of(bench, thresholds, gate=NEVER, team=True, workers=2, attempts=90)
    redirects = [e for e in events if isinstance(e, Redirected)]
    given_up = {direction for e in redirects for node, direction in e.dry if node == 0}
    assert given_up
    assert Direction.MEMORY_ACCESS.value not in given_up
    first = redirects[0]
    dry = {direction for _, direction in first.dry}
    later = [e for e in events[first.number:] if isinstance(e, Assigned)]
    assert later
    assert not [e for e in later if set(e.directions) & dry], "an exhausted direction came again"
    assert any("is exhausted" in s for a in bench.asked[-1:] for s in a.insights)


def test_a_rule_that_never_passes_is_not_judged_any_more() -> None:
    thresholds = quiet(no_progress=20, hypothesis=5)
    bench = FakeBench(steps=(1, 12), limit=400, floor=35)
    events = events_of(bench, thresholds, gate=NEVER)
    first = next(e for e in events if isinstance(e, Redirected))
    assert [(node, rule) for node, rule, *_ in first.hopeless] == [(0, "cheaper-12")]
    started = next(e.number for e in events[first.number:] if isinstance(e, Assigned))
    assert not [e for e in events[started:] if isinstance(e, Attempted)
                and e.rule == "cheaper-12"]
    assert sum(e.blocked for e in events[started:] if isinstance(e, Finished)) > 0


def test_the_second_redirect_goes_back_to_earlier_nodes() -> None:
    """Commits at first, then nothing: changing the target does not help, so it backtracks."""
    bench = FakeBench(costs=(40,) * 10, floor=39, steps=(1, 12), limit=60)
    thresholds = quiet(no_progress=15, redirects=3, hypothesis=1000)
    events = events_of(bench, thresholds, attempts=200, team=True, workers=2)
    redirects = [e for e in events if isinstance(e, Redirected)]
    assert [e.action for e in redirects[:2]] == ["change-target", "backtrack"]
    after = [e for e in events[redirects[1].number:] if isinstance(e, Assigned)]
    assert after
    assert {e.policy for e in after[:2]} == {"backtrack"}


def test_stagnation_escalates_to_more_starts_and_longer_assignments() -> None:
    bench = FakeBench(costs=(40,) * 10, floor=39, steps=(1, 12), limit=60)
    thresholds = quiet(no_progress=12, redirects=2, levels=1, starts=3)
    events = events_of(bench, thresholds, attempts=200, team=True, workers=2)
    first = next(e for e in events if isinstance(e, Escalated))
    # The thresholds are counted from each redirect on.
    assert sum(isinstance(e, Redirected) for e in events[:first.number]) >= 2
    assert first.level == 1
    assert len(first.starts) == 3
    after = [e for e in events[first.number:] if isinstance(e, Assigned) and e.level == 1]
    assert {e.base for e in after} <= set(first.starts)
    assert {e.attempts for e in after} == {12}
    assert all(len(e.directions) > 1 for e in after[:1])


def test_a_commit_ends_an_escalation() -> None:
    class Late(FakeBench):
        """Finds something only once all directions are asked for at once."""

        def propose(self, assignment: Assignment) -> Proposals:
            if len(assignment.directions) == 1:
                yield from ()
                return
            yield from super().propose(assignment)

    thresholds = quiet(levels=2)
    events = events_of(Late(steps=(1, 2)), thresholds, team=True, workers=2, attempts=40)
    levels = [e.level for e in events if isinstance(e, Assigned)]
    assert levels[0] == 0
    assert max(levels) == 2
    commit = next(e for e in events if isinstance(e, Attempted) and e.node is not None)
    following = [e for e in events[commit.number:] if isinstance(e, Assigned)]
    assert following[0].level == 0


def test_when_nothing_is_left_it_looks_again_and_then_ends() -> None:
    bench = FakeBench(limit=0)
    events = events_of(bench, Thresholds(levels=5), attempts=100)
    escalations = [e for e in events if isinstance(e, Escalated)]
    # Neither what was left open, nor all of it again brought anything to judge: no third time.
    assert [e.level for e in escalations] == [1, 2]
    assert events[-1].to_json()["why"] == "exhausted"


@pytest.mark.parametrize("setting", [
    {"no_progress": 0}, {"window": 0}, {"repeats": 0.0}, {"repeats": 1.5}, {"levels": -1},
    {"faults": 0}, {"hypothesis": 0}, {"redirects": 0}, {"starts": 0}, {"most_faults": 0},
])
def test_thresholds_that_make_no_sense(setting: dict[str, int]) -> None:
    with pytest.raises(SupervisionError, match=r"search\.supervision"):
        Thresholds(**setting)
