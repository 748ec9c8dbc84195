"""What is remembered, within bounds, and what is not judged any more."""

from __future__ import annotations

import pytest

from asmevo.propose.proposal import Direction, Failure
from asmevo.search.attempt import Block
from asmevo.search.budget import Budget, BudgetError
from asmevo.search.memory import EVERYWHERE, Memory, region, stopped_by
from tests.search.test_composition import edit


def failure(rule: str = "swap", code: str = "new-hazard", start: int = 40) -> Failure:
    return Failure(rule, (edit(start, start + 1),), "G1", code, "why")


def test_failures_and_insights_are_bounded() -> None:
    memory = Memory(failures=3, insights=4)
    for number in range(10):
        memory.failed(0, failure(f"rule-{number}"))
        memory.note(f"helped {number}")
        memory.give_up([f"exhausted {number}", "exhausted for good"])
    assert [f.rule for f in memory.failures] == ["rule-7", "rule-8", "rule-9"]
    assert memory.insights == ("helped 8", "helped 9", "exhausted 9", "exhausted for good")


def test_a_kind_that_always_fails_in_a_place_is_stopped_there() -> None:
    memory = Memory(signature=3)
    for _ in range(2):
        memory.failed(0, failure())
    assert not memory.blocked(0)
    memory.failed(0, failure())
    blocked = memory.blocked(0)
    assert stopped_by(blocked, "swap", (edit(41, 42),)) == Block("G1", "new-hazard", 3)
    # Another place, rule or base is free.
    assert stopped_by(blocked, "swap", (edit(400, 401),)) is None
    assert stopped_by(blocked, "move", (edit(41, 42),)) is None
    assert not memory.blocked(1)


def test_different_codes_are_different_signatures() -> None:
    memory = Memory(signature=3)
    for code in ("new-hazard", "missing-wait", "new-hazard", "missing-wait"):
        memory.failed(0, failure(code=code))
    assert not memory.blocked(0)


def test_what_passed_once_is_never_stopped() -> None:
    memory = Memory(signature=3)
    memory.passed(0, "swap", (edit(40, 41),))
    for _ in range(10):
        memory.failed(0, failure())
    assert not memory.blocked(0)


def test_edits_all_over_the_kernel_have_no_place() -> None:
    memory = Memory(signature=1)
    memory.failed(0, Failure("all", (edit(1, 2), edit(500, 501)), "G1", "code", "why"))
    assert region((edit(1, 2), edit(500, 501))) == ""
    assert stopped_by(memory.blocked(0), "all", (edit(1, 2), edit(500, 501))) is None


def test_a_rule_given_up_is_stopped_everywhere_until_reopened() -> None:
    memory = Memory()
    memory.give_up_rule(0, "swap", Block("G2", "unequal", 12))
    memory.mark_dry(0, (Direction.SIMPLIFICATION,))
    blocked = memory.blocked(0)
    assert blocked == {("swap", EVERYWHERE): Block("G2", "unequal", 12)}
    assert stopped_by(blocked, "swap", (edit(1, 2), edit(900, 901)))
    memory.reopen()
    assert not memory.blocked(0)
    assert not memory.dry(0, Direction.SIMPLIFICATION)


def test_dry_without_directions_is_all_of_them() -> None:
    memory = Memory()
    memory.mark_dry(3, ())
    assert all(memory.dry(3, direction) for direction in Direction)
    assert not memory.dry(2, Direction.SIMPLIFICATION)


@pytest.mark.parametrize("given", [
    {"attempts": 0}, {"seconds": 0.0}, {"tokens": 0}, {"cost": 0.0}, {"cost": float("inf")},
])
def test_budgets_that_make_no_sense(given: dict[str, float]) -> None:
    with pytest.raises(BudgetError, match=r"search\.budget"):
        Budget(**given)  # type: ignore[arg-type]
