"""Everything a search knows, made from its events alone: so a killed one can be rebuilt."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace

from asmevo.codeobject.assembly import Edit
from asmevo.gates.verdict import Outcome
from asmevo.propose.proposal import Direction, Failure, Spending
from asmevo.search.attempt import BARREN, Assignment, Attempt, Block, Judged
from asmevo.search.budget import Budget
from asmevo.search.composition import Part, chained
from asmevo.search.events import (
    AnyEvent,
    Assigned,
    Attempted,
    Committed,
    Composed,
    Ended,
    Escalated,
    Fault,
    Finished,
    ParentFact,
    Redirected,
    Resumed,
    Started,
    VerdictFact,
)
from asmevo.search.gains import Gains
from asmevo.search.lineage import Lineage, Node
from asmevo.search.memory import Memory
from asmevo.search.planner import View
from asmevo.search.supervision import Supervision
from asmevo.search.tally import Share, Tally, shares
from asmevo.search.turns import Turns


@dataclass
class Flight:
    """An assignment that has not ended."""

    event: Assigned
    assignment: Assignment
    own: dict[str, Judged] = field(default_factory=dict)
    faults: int = 0
    last_node: int | None = None

    def again(self) -> Assignment:
        """The assignment for another worker to go on with, as if nothing had happened."""
        return replace(
            self.assignment, known={**self.assignment.known, **self.own},
            done=len(self.own) + self.faults, skip=self.faults)


class State:
    """Lineage, memory, counts and plans in progress.

    `apply` is the only way in: the controller applies each event as it happens, and a resumed run
    applies those of its earlier sittings. Whatever it decides next depends on nothing else.
    """

    def __init__(self, lineage: Lineage, budget: Budget, *, seed: int = 0,
                 memory: Memory | None = None, supervision: Supervision | None = None,
                 root_fingerprint: str = "") -> None:
        self.lineage = lineage
        self.budget = budget
        self.seed = seed
        self.memory = memory or Memory()
        self.supervision = supervision or Supervision()
        self.tally = Tally()
        self.gains = Gains()
        self.turns = Turns()
        self.events = 0
        self.attempts = 0
        self.assignments = 0
        self.started: Started | None = None
        self.ended: Ended | None = None
        self.flights: dict[int, Flight] = {}
        # What became of compositions on each node, and what their states are called.
        self._composed: dict[int, dict[str, Judged]] = {}
        self._chains: dict[tuple[int, str], str] = {}
        self._names: dict[tuple[int, str], str] = {}
        self._marks: dict[str, tuple[int, str, Judged]] = {}
        if root_fingerprint:
            self.memory.saw(root_fingerprint)

    def view(self) -> View:
        """What a planner sees."""
        return View(
            self.lineage, self.memory, self.budget.left,
            tuple(flight.event for _, flight in sorted(self.flights.items())),
            self.tally.tried, self.supervision.course, self.supervision.level,
            self.supervision.starts, self.tally.gained)

    def apply(self, event: AnyEvent, *, attempt: Attempt | None = None,
              node: Node | None = None) -> None:
        """``attempt`` belongs to an `Attempted` that is no duplicate, ``node`` to a `Committed`."""
        if event.number != self.events:
            raise ValueError(f"event {event.number} is not number {self.events}")
        self.events += 1
        match event:
            case Started():
                self.started = event
            case Resumed():
                self.ended = None
            case Ended():
                self.ended = event
            case Assigned():
                self._assigned(event)
            case Attempted():
                self._attempted(event, attempt)
            case Committed():
                assert node is not None
                self._committed(event, node)
            case Finished():
                self._finished(event)
            case Composed():
                self.gains.mark_tried(event.base, event.parts)
            case Fault():
                self._fault(event)
            case Redirected():
                self._redirected(event)
            case Escalated():
                # At first from nodes that were left when something better was found; beyond that,
                # what was exhausted is looked at again, with other seeds.
                if event.level > 1:
                    self.memory.reopen()
                self.supervision.escalated(event.level, event.starts)

    def seed_of(self, assignment: int, worker: int) -> int:
        """What an assignment's randomness comes from."""
        text = f"{self.seed} {assignment} {worker}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1

    def named(self, base: int, parents: tuple[ParentFact, ...]) -> tuple[ParentFact, ...]:
        """Parents of a composition with the registry's id of what was composed before."""
        if not parents:
            return ()
        above = parents[0]
        known = self._chains.get((base, above.candidate), above.candidate)
        return (replace(above, candidate=known), *parents[1:])

    # -- each kind -------------------------------------------------------------------------------

    def _assigned(self, event: Assigned) -> None:
        base = self.lineage[event.base]
        parts: tuple[Part, ...] = ()
        known: dict[str, Judged] = {}
        if event.parts:
            there = {part.candidate: part for part in self.gains.on(self.lineage, base)}
            parts = tuple(there[name] for name in event.parts if name in there)
            known = dict(self._composed.get(event.base, {}))
            for part in parts:
                if part.base == event.base and (found := self._marks.get(part.candidate)):
                    known[found[1]] = replace(found[2], own=False)
        self.assignments = event.assignment
        self.flights[event.worker] = Flight(event, Assignment(
            worker=event.worker, base=base,
            directions=tuple(Direction(d) for d in event.directions), attempts=event.attempts,
            target=event.target, seen=self.memory.seen, failures=self.memory.failures,
            seed=event.seed, experience=self.tally.experience(),
            rules=self.tally.rule_experience(), insights=self.memory.insights,
            number=event.assignment, parts=parts, blocked=self.memory.blocked(event.base),
            known=known, barren=BARREN if event.level < 2 else BARREN // 8,
            tokens=self.budget.tokens_left, cost=self.budget.cost_left))
        self.turns.joined(event.worker)

    def _attempted(self, event: Attempted, attempt: Attempt | None) -> None:
        self.attempts = event.attempt
        self.budget.used += 1
        self.budget.spent += Spending(event.tokens, event.cost)
        flight = self.flights[event.worker]
        judged = judged_of(event)
        flight.own[event.fingerprint] = judged
        self.turns.attempted(event)
        base = self.lineage[event.base].speedup
        self.supervision.attempted(event, base)
        self.memory.saw(event.fingerprint)
        self.tally.attempted(event, self._sources(event))
        if event.duplicate:
            return
        assert attempt is not None
        edits = attempt.proposal.edits
        if event.parents:
            self._composed.setdefault(event.base, {})[event.fingerprint] = replace(
                judged, own=False)
        if event.passed:
            self.memory.passed(event.base, event.rule, edits)
            self._gained(event, edits, base)
        elif event.last is not None:
            self.memory.failed(event.base, Failure(
                event.rule, edits, event.last.gate, event.last.code, event.last.reason))

    def _gained(self, event: Attempted, edits: tuple[Edit, ...], base: float) -> None:
        assert event.speedup is not None
        if event.parents:
            above, part = event.parents
            name = self._names.get((event.base, above.candidate), above.candidate)
            name = part.candidate if above.node == event.base else chained(name, part.candidate)
            self._chains[event.base, name] = event.candidate
            self._names[event.base, event.candidate] = name
        self.gains.add(Part(
            event.candidate, event.base, edits, event.speedup / base, event.speedup, event.rule,
            Direction(event.direction), event.proposer, event.assumption, event.node,
            tuple(p.candidate for p in event.parents)))
        self._marks[event.candidate] = (event.base, event.fingerprint, judged_of(event))

    def _sources(self, event: Attempted) -> tuple[Share, ...]:
        """What a committed composition's gain goes to."""
        if event.node is None or not event.parents:
            return ()
        leaves: dict[str, Part] = {}
        pending = [parent.candidate for parent in event.parents]
        while pending:
            part = self.gains.part(pending.pop())
            if part is None:
                continue
            if part.sources:
                pending.extend(part.sources)
            else:
                leaves[part.candidate] = part
        share = shares({name: part.ratio for name, part in leaves.items()})
        return tuple(Share(part.rule, part.proposer, part.direction, share[name])
                     for name, part in leaves.items())

    def _committed(self, event: Committed, node: Node) -> None:
        self.lineage.add(node)
        self.flights[event.worker].last_node = event.node
        where = ", ".join(f"{start} to {stop}" for start, stop in event.windows[:3])
        more = " and more" if len(event.windows) > 3 else ""
        self.memory.note(
            f"{event.rule} at {where}{more} of node {event.parent} helped: "
            f"{100.0 * math.expm1(math.log(event.speedup / event.before)):+.2f} % "
            f"({event.rationale[:120]})")

    def _finished(self, event: Finished) -> None:
        flight = self.flights.pop(event.worker)
        self.budget.spent += Spending(event.tokens, event.cost)
        self.tally.finished(event)
        self.supervision.finished(event)
        if event.exhausted and not flight.event.parts:
            self.memory.mark_dry(flight.event.base, flight.assignment.directions)

    def _fault(self, event: Fault) -> None:
        self.budget.used += 1
        self.tally.fault(event)
        self.supervision.fault(event)
        self.turns.fault(event.worker)
        flight = self.flights[event.worker]
        flight.faults += 1
        if event.abandoned:
            del self.flights[event.worker]
            self.gains.mark_tried(flight.event.base, flight.event.parts)

    def _redirected(self, event: Redirected) -> None:
        for node, direction in event.dry:
            self.memory.mark_dry(node, (Direction(direction),))
        for node, rule, gate, code, count in event.hopeless:
            self.memory.give_up_rule(node, rule, Block(gate, code, count))
        self.memory.give_up(event.exhausted)
        self.supervision.redirected(event.action)


def judged_of(event: Attempted) -> Judged:
    """What a proposer may know of an attempt: nothing of G4, which is the controller's."""
    stopped: VerdictFact | None = next(
        (v for v in event.verdicts if v.gate != "G4" and v.outcome != Outcome.PASS.value), None)
    if stopped is None:
        return Judged(speedup=event.speedup, seconds=event.took)
    return Judged(stopped.gate, stopped.code, stopped.reason, event.speedup, event.took)
