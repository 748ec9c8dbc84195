"""From which node each policy branches, and what planners make of it."""

from __future__ import annotations

import pytest

from asmevo.propose.proposal import Direction
from asmevo.search.events import Assigned
from asmevo.search.lineage import Lineage, Node, exported, windows_of
from asmevo.search.memory import Memory
from asmevo.search.planner import GreedyPlanner, PlanError, TeamPlanner, View
from asmevo.search.policy import POLICIES, Backtrack, Best, Diverse, Policy, Recent
from tests.search.fakes import RESOURCES, assembly, root
from tests.search.test_composition import edit


def tree() -> Lineage:
    """0 -> 1 (line 0) -> 2 (line 1), 0 -> 3 (line 5), 2 -> 4 (line 2); 4 is the fastest."""
    lineage = Lineage(root())
    for number, parent, speedup, line in (
            (1, 0, 1.1, 0), (2, 1, 1.2, 1), (3, 0, 1.15, 5), (4, 2, 1.3, 2)):
        lineage.add(Node(
            number, parent, assembly([number] * 25), b"", str(number) * 64, speedup, RESOURCES,
            edits=(edit(line, line + 1, f"s_nop {number}"),), rule="r",
            direction=Direction.SIMPLIFICATION, rationale="why"))
    return lineage


@pytest.mark.parametrize(("policy", "numbers"), [
    (Best(), [4, 2, 3, 1, 0]),
    (Recent(), [4, 3, 2, 1, 0]),
    (Backtrack(), [2, 1, 0, 3, 4]),
    # 3 and the root have nothing in common with 4; 3 is the faster of them. Then the root, which
    # has nothing in common with either, and so on.
    (Diverse(), [4, 3, 0, 1, 2]),
])
def test_orders(policy: Policy, numbers: list[int]) -> None:
    assert [node.number for node in policy.order(tree())] == numbers


@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda p: str(p.name))
def test_every_node_is_in_every_order(policy: Policy) -> None:
    assert sorted(n.number for n in policy.order(tree())) == [0, 1, 2, 3, 4]
    assert [n.number for n in policy.order(Lineage(root()))] == [0]


def view(**given: object) -> View:
    return View(**{"lineage": tree(), "memory": Memory(), "attempts": 100, **given})  # type: ignore[arg-type]


def at(worker: int, base: int, direction: Direction) -> Assigned:
    return Assigned(assignment=1, worker=worker, base=base, directions=(direction.value,),
                    attempts=1, target=1.0, seed=0)


def test_greedy_stays_with_the_best() -> None:
    memory = Memory()
    plan = GreedyPlanner().plan(0, view(memory=memory))
    assert plan is not None
    assert (plan.base, plan.directions, plan.policy) == (4, tuple(Direction), "best")
    memory.mark_dry(4, ())
    assert GreedyPlanner().plan(0, view(memory=memory)) is None
    back = GreedyPlanner(backtrack=True).plan(0, view(memory=memory))
    assert back is not None
    assert back.base == 2


def test_team_tries_all_directions_and_then_prefers_what_gains() -> None:
    team = TeamPlanner(policies=("best",))
    tried: dict[tuple[int, Direction], int] = {(0, d): 16 for d in Direction}
    del tried[0, Direction.SIMPLIFICATION]
    plan = team.plan(0, view(tried=tried))
    assert plan is not None
    assert plan.directions == (Direction.SIMPLIFICATION,)
    tried[0, Direction.SIMPLIFICATION] = 16
    plan = team.plan(0, view(tried=tried, gained={Direction.MEMORY_ACCESS: 0.05}))
    assert plan is not None
    assert plan.directions == (Direction.MEMORY_ACCESS,)
    # Until it has not gained anything for long.
    tried[4, Direction.MEMORY_ACCESS] = 100
    plan = team.plan(0, view(tried=tried, gained={Direction.MEMORY_ACCESS: 0.05}))
    assert plan is not None
    assert plan.directions != (Direction.MEMORY_ACCESS,)


def test_team_steals_on_the_same_node_before_it_turns_to_another() -> None:
    memory = Memory()
    team = TeamPlanner(policies=("best",))
    first, second, third, *_ = Direction
    plan = team.plan(0, view(memory=memory, in_flight=(at(1, 4, second),)))
    assert plan is not None
    assert (plan.base, plan.directions) == (4, (first,))
    memory.mark_dry(4, (first,))
    stolen = team.plan(0, view(memory=memory, in_flight=(at(1, 4, second),)))
    assert stolen is not None
    assert (stolen.base, stolen.directions) == (4, (third,))


def test_no_two_workers_get_the_same_node_and_direction() -> None:
    team = TeamPlanner(directions=("simplification",), policies=("best",))
    plan = team.plan(1, view(in_flight=(at(0, 4, Direction.SIMPLIFICATION),)))
    assert plan is not None
    assert plan.base == 2


def test_a_diverse_worker_keeps_away_from_the_others() -> None:
    team = TeamPlanner(policies=("best", "diverse"))
    first = team.plan(1, view(in_flight=(at(0, 4, Direction.LATENCY_HIDING),)))
    assert first is not None
    assert (first.base, first.policy) == (3, "diverse")
    both = (at(0, 4, Direction.LATENCY_HIDING), at(2, 3, Direction.DEPENDENCY_CHAINS))
    second = team.plan(1, view(in_flight=both))
    assert second is not None
    assert second.base == 0


def test_workers_follow_different_policies() -> None:
    team = TeamPlanner(policies=("best", "recent", "diverse", "backtrack"))
    bases = [plan.base for worker in range(4)
             if (plan := team.plan(worker, view())) is not None]
    assert bases == [4, 4, 4, 2]


def test_supervision_overrules_policies() -> None:
    team = TeamPlanner(policies=("best",), attempts_per_worker=4, growth=3.0)
    back = team.plan(0, view(course="backtrack"))
    assert back is not None
    assert (back.base, back.policy) == (2, "backtrack")
    wide = team.plan(0, view(level=2, starts=(3, 1)))
    assert wide is not None
    assert (wide.base, wide.directions, wide.attempts) == (3, tuple(Direction), 36)


def test_a_plan_never_asks_for_more_than_is_left() -> None:
    for planner in (GreedyPlanner(), TeamPlanner()):
        plan = planner.plan(0, view(attempts=3))
        assert plan is not None
        assert plan.attempts == 3


@pytest.mark.parametrize("setting", [
    {"policies": ("fastest",)}, {"policies": ()}, {"directions": ("sideways",)},
    {"directions": ()}, {"attempts_per_worker": 0}, {"growth": 0.5},
])
def test_settings_that_make_no_sense(setting: dict[str, object]) -> None:
    with pytest.raises(PlanError, match=r"search\.planner"):
        TeamPlanner(**setting)  # type: ignore[arg-type]


def test_lineage_refuses_orphans() -> None:
    lineage = Lineage(root())
    with pytest.raises(ValueError, match="no parent"):
        lineage.add(Node(1, 5, assembly([1]), b"", "0" * 64, 1.1, RESOURCES))
    with pytest.raises(ValueError, match="would not be"):
        lineage.add(Node(3, 0, assembly([1]), b"", "0" * 64, 1.1, RESOURCES))


def test_path_leads_from_the_root() -> None:
    lineage = tree()
    assert [n.number for n in lineage.path(lineage.best)] == [0, 1, 2, 4]


def test_windows_join_what_is_near() -> None:
    assert windows_of((edit(30, 31), edit(1, 2), edit(5, 9))) == ((1, 9), (30, 31))


def test_export_has_every_field_of_a_node() -> None:
    first, *_, last = exported(tree())
    assert set(first) == set(last) == {
        "number", "parent", "sha256", "candidate", "speedup", "rule", "proposer", "direction",
        "rationale", "assumption", "resources", "windows", "edits", "parents"}
    assert first["parent"] is None
    assert last["windows"] == [[2, 3]]
    assert last["resources"] == {"vgprs": 8, "sgprs": 16, "lds_bytes": 0}
