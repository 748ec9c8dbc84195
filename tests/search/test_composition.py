"""Composing verified candidates: which edits go together, and what is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody, Line
from asmevo.gates.verdict import Gate
from asmevo.propose.proposal import Direction, Proposal, Proposals
from asmevo.search.attempt import Assignment
from asmevo.search.composition import INTEGRATOR, disjoint, joined, rebased
from asmevo.search.controller import Composing
from asmevo.search.events import Assigned, Attempted, Committed, Composed
from asmevo.search.planner import GreedyPlanner
from tests.search.fakes import KERNEL, FakeBench, controller, costs_of, root, state
from tests.search.memory_journal import MemoryJournal

COUNT = 12


def text(lines: tuple[str, ...]) -> Assembly:
    return Assembly("0" * 64, (KernelBody(KERNEL, tuple(Line(line) for line in lines)),))


def lines_of(assembly: Assembly) -> list[str]:
    return [line.text for line in assembly.body(KERNEL).lines if line.text]


BASE = text(tuple(f"s_nop {i}" for i in range(COUNT)))


def edit(start: int, stop: int, *lines: str) -> Edit:
    return Edit(KERNEL, start, stop, lines, "why")


@st.composite
def edit_sets(draw: st.DrawFn) -> tuple[Edit, ...]:
    places = sorted(draw(st.lists(
        st.integers(0, COUNT), min_size=2, max_size=6, unique=True)))
    mark = draw(st.integers(0, 9))
    return tuple(
        edit(places[i], places[i + 1],
             *(f"s_nop {100 + mark}" for _ in range(draw(st.integers(0, 3)))))
        for i in range(0, len(places) - 1, 2))


@given(edit_sets(), edit_sets())
def test_one_after_the_other_is_both_at_once(first: tuple[Edit, ...],
                                             second: tuple[Edit, ...]) -> None:
    """Whatever is composed: edits moved over others do what applying all at once does."""
    together = joined(first, second)
    moved = rebased(second, first)
    assert (together is None) == (moved is None)
    if together is not None and moved is not None:
        at_once = lines_of(BASE.apply(together))
        assert lines_of(BASE.apply(first).apply(moved)) == at_once


@pytest.mark.parametrize(("first", "second", "apart"), [
    (edit(1, 3), edit(3, 4), True),
    (edit(1, 3), edit(2, 4), False),
    (edit(1, 5), edit(2, 2, "s_nop 1"), False),
    (edit(1, 3), edit(1, 1, "s_nop 1"), True),
    (edit(1, 3), edit(3, 3, "s_nop 1"), True),
    (edit(2, 2, "s_nop 1"), edit(2, 2, "s_nop 2"), False),
])
def test_regions_that_are_at_odds(first: Edit, second: Edit, apart: bool) -> None:
    assert disjoint([first], [second]) is apart
    assert disjoint([second], [first]) is apart


def test_the_same_edit_in_both_counts_once() -> None:
    shared, own, other = edit(1, 2), edit(4, 5), edit(7, 8)
    assert joined((shared, own), (shared, other)) == (shared, own, other)
    assert joined((shared, own), (shared,)) is None


class Small(FakeBench):
    """Makes each line cheaper by one, which is too little: 1000 / 999 is below m*."""

    def propose(self, assignment: Assignment) -> Proposals:
        now = costs_of(assignment.base.assembly)
        for index, cost in enumerate(now):
            if cost == self.costs[index]:
                yield Proposal(
                    (Edit(KERNEL, index, index + 1, (f"s_nop {cost - 1}",), "one less"),),
                    "one-less", tuple(Direction)[index % 5], f"line {index}")


def test_gains_too_small_alone_are_committed_together() -> None:
    bench = Small(costs=(100,) * 10)
    made = controller(bench, attempts=40)
    made.run()
    journal = made.journal
    assert isinstance(journal, MemoryJournal)
    commits = [e for e in journal.events if isinstance(e, Committed)]
    assert commits
    assert all(e.proposer == INTEGRATOR for e in commits)
    assert sum(costs_of(made.state.lineage.best.assembly)) == 990
    for event in commits:
        assert len(event.parents) == 2
        assert event.speedup > max(parent.speedup for parent in event.parents)
    # What the parts gained is theirs, not the integrator's.
    assert made.state.tally.experience()["fake"].gain > 0.0
    assert made.state.tally.experience()[INTEGRATOR].accepted == len(commits)


def test_without_composition_they_are_lost() -> None:
    made = controller(Small(costs=(100,) * 10), attempts=40, composing=Composing(parts=0))
    made.run()
    assert len(made.state.lineage) == 1


def test_every_step_of_a_composition_goes_through_the_gates() -> None:
    """Lines 0 and 1 are right alone and wrong together: one of them is left out."""
    bench = Small(costs=(100,) * 10, clashes=((0, 1),))
    made = controller(bench, attempts=60)
    made.run()
    journal = made.journal
    assert isinstance(journal, MemoryJournal)
    final = costs_of(made.state.lineage.best.assembly)
    assert sum(final) <= 992
    assert final[0] == 100 or final[1] == 100
    failed = [e for e in journal.events if isinstance(e, Attempted)
              and e.proposer == INTEGRATOR and not e.passed]
    assert failed
    assert all(e.last is not None and e.last.gate == Gate.G2.value for e in failed)


def test_a_composition_is_recorded_with_what_was_kept() -> None:
    made = controller(Small(costs=(100,) * 10), attempts=40)
    made.run()
    journal = made.journal
    assert isinstance(journal, MemoryJournal)
    plans = {e.assignment: e for e in journal.events if isinstance(e, Assigned) and e.parts}
    ends = [e for e in journal.events if isinstance(e, Composed)]
    assert ends
    candidates = {e.candidate for e in journal.events if isinstance(e, Attempted)}
    for end in ends:
        assert end.parts == plans[end.assignment].parts
        assert set(end.kept) <= set(end.parts) <= candidates
    parents = [p.candidate for e in journal.events if isinstance(e, Committed)
               for p in e.parents if p.node != 0]
    assert parents
    assert {p for p in parents if p} <= candidates


def test_siblings_that_touch_different_lines_are_put_together() -> None:
    """Two branches from the root, each a commit of its own: the better one gets the other's edit.

    Proposals on node 1 are all worthless, so that only composition can go beyond it.
    """

    class Siblings(FakeBench):
        def propose(self, assignment: Assignment) -> Proposals:
            if assignment.base.number == 0:
                for index, cost in ((0, 90), (5, 80)):
                    yield Proposal((edit(index, index + 1, f"s_nop {cost}"),), f"line-{index}",
                                   Direction.LATENCY_HIDING, "cheaper")

    made = controller(Siblings(costs=(100,) * 10), planner=GreedyPlanner(backtrack=True),
                      of=state(root((100,) * 10)))
    made.run()
    nodes = list(made.state.lineage)
    assert [sum(costs_of(n.assembly)) for n in nodes] == [1000, 990, 980, 970]
    last = nodes[-1]
    assert last.rule == "composition"
    assert {p.node for p in last.parents} == {1, 2}
    assert last.assembly == nodes[last.parent or 0].assembly.apply(last.edits)
