"""Which worker tries what, from which node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from asmevo.errors import AsmEvoError
from asmevo.propose.proposal import Direction
from asmevo.search.events import Assigned
from asmevo.search.lineage import Lineage, Node
from asmevo.search.memory import Memory
from asmevo.search.policy import POLICIES, Backtrack, Best, Diverse, Policy

# A direction is taken to have gained 2 % in 4 candidates before it was tried.
_CREDIT = 0.02
_ADVANCE = 4


class PlanError(AsmEvoError):
    """A planner's setting makes no sense."""


@dataclass(frozen=True, slots=True)
class View:
    """What a plan is made from.

    ``in_flight`` are the assignments that other workers are at, ``tried`` counts candidates by node
    and direction, ``gained`` adds up what commits gained by direction (logarithms). ``course`` is
    what supervision asks for (``""``, ``change-target``, ``backtrack``), ``level`` how
    far it has escalated and ``starts`` the nodes to start from then.
    """

    lineage: Lineage
    memory: Memory
    attempts: int
    in_flight: Sequence[Assigned] = ()
    tried: Mapping[tuple[int, Direction], int] = field(default_factory=dict)
    course: str = ""
    level: int = 0
    starts: tuple[int, ...] = ()
    gained: Mapping[Direction, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """An assignment before it has a number."""

    base: int
    directions: tuple[Direction, ...]
    attempts: int
    policy: str


class Planner(Protocol):
    """Says what a free worker does next; ``None``: there is nothing for it now.

    Once that is so for every worker and none is busy, the search is exhausted.
    """

    def plan(self, worker: int, view: View) -> Plan | None: ...


@dataclass(frozen=True)
class GreedyPlanner:
    """All open directions at once on the best node; with ``backtrack``, earlier nodes when that one
    has nothing left.

    ``attempts_per_worker`` bounds an assignment, so that supervision can change its course.
    """

    backtrack: bool = False
    attempts_per_worker: int = 64
    growth: float = 2.0

    def __post_init__(self) -> None:
        _check(self.attempts_per_worker, self.growth)

    def plan(self, worker: int, view: View) -> Plan | None:
        policy: Policy = Best()
        nodes: Sequence[Node] = policy.order(view.lineage)
        if view.level or view.course == "backtrack":
            policy, nodes = _off_course(view)
        elif not self.backtrack:
            nodes = nodes[:1]
        busy = {(assigned.base, d) for assigned in view.in_flight for d in _of(assigned)}
        for node in nodes:
            directions = tuple(
                d for d in Direction
                if not view.memory.dry(node.number, d) and (node.number, d) not in busy)
            if directions:
                attempts = _share(self.attempts_per_worker, self.growth, view)
                return Plan(node.number, directions, attempts, policy.name)
        return None


@dataclass(frozen=True)
class TeamPlanner:
    """Gives each worker a direction of its own, on the node that the worker's policy wants.

    Worker ``w`` follows ``policies[w % len(policies)]``, so that the team starts from different
    verified nodes as soon as there are some; ``diverse`` keeps away from where others are. Of the
    directions that no other worker is at it gets the one that promises most: what it has gained so
    far for each candidate, with as much credit in advance that all are tried before one is
    preferred. A worker whose direction is exhausted on a node takes over another's there, before it
    turns to another node. ``attempts_per_worker`` bounds an assignment, so that workers meet often
    enough to start from each other's results. ``growth`` is the factor for each level of
    escalation, in which workers get all directions of a node at once.
    """

    attempts_per_worker: int = 16
    directions: Sequence[str] = tuple(d.value for d in Direction)
    policies: Sequence[str] = ("best", "best", "diverse", "best")
    growth: float = 2.0

    def __post_init__(self) -> None:
        _check(self.attempts_per_worker, self.growth)
        unknown = [d for d in self.directions if d not in tuple(Direction)]
        if unknown or not self.directions:
            raise PlanError(f"search.planner.directions must be among {', '.join(Direction)}, not "
                            f"{', '.join(unknown) or 'none'}")
        strange = [name for name in self.policies if name not in POLICIES]
        if strange or not self.policies:
            raise PlanError(f"search.planner.policies must be among {', '.join(POLICIES)}, not "
                            f"{', '.join(strange) or 'none'}")

    def plan(self, worker: int, view: View) -> Plan | None:
        policy: Policy = POLICIES[self.policies[worker % len(self.policies)]]
        nodes = policy.order(view.lineage)
        if isinstance(policy, Diverse):
            # Where no other worker is.
            occupied = {assigned.base for assigned in view.in_flight}
            nodes = sorted(nodes, key=lambda node: node.number in occupied)
        if view.level or view.course == "backtrack":
            policy, nodes = _off_course(view)
        attempts = _share(self.attempts_per_worker, self.growth, view)
        busy = {(assigned.base, d) for assigned in view.in_flight for d in _of(assigned)}
        mine = tuple(Direction(d) for d in self.directions)
        if view.level:
            for node in nodes:
                open_here = tuple(
                    d for d in mine
                    if not view.memory.dry(node.number, d) and (node.number, d) not in busy)
                if open_here:
                    return Plan(node.number, open_here, attempts, policy.name)
            return None
        taken = Counter(d for assigned in view.in_flight for d in _of(assigned))
        openings = [
            (node, direction) for node in nodes for direction in mine
            if not view.memory.dry(node.number, direction)
            and (node.number, direction) not in busy
        ]
        if not openings:
            return None
        rank = {node.number: index for index, node in enumerate(nodes)}
        tried: Counter[Direction] = Counter()
        for (_, along), count in view.tried.items():
            tried[along] += count
        worth = {d: (view.gained.get(d, 0.0) + _CREDIT) / (tried[d] + _ADVANCE) for d in mine}
        node, direction = min(openings, key=lambda o: (
            taken[o[1]] > 0, rank[o[0].number], taken[o[1]], -worth[o[1]], mine.index(o[1])))
        return Plan(node.number, (direction,), attempts, policy.name)


def _of(assigned: Assigned) -> tuple[Direction, ...]:
    if assigned.parts:
        return ()
    return tuple(Direction(d) for d in assigned.directions) or tuple(Direction)


def _off_course(view: View) -> tuple[Policy, Sequence[Node]]:
    """The nodes when supervision decides: the starts of an escalation, or back to earlier ones."""
    if view.level:
        return Diverse(), [view.lineage[number] for number in view.starts]
    return Backtrack(), Backtrack().order(view.lineage)


def _share(attempts: int, growth: float, view: View) -> int:
    return max(1, min(round(attempts * growth ** view.level), view.attempts))


def _check(attempts: int, growth: float) -> None:
    if attempts < 1 or not growth >= 1.0:
        raise PlanError("search.planner needs attempts_per_worker of at least 1 and a growth of at "
                        f"least 1, not {attempts} and {growth:g}")
