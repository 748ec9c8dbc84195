"""The deterministic controller: it owns budget, commits, lineage and the end of the search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from asmevo.gates.commit import CommitGate
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.search.attempt import Attempt, Finish, Lost, Step
from asmevo.search.composition import Part
from asmevo.search.events import (
    AnyEvent,
    Assigned,
    Attempted,
    Committed,
    Composed,
    Ended,
    Escalated,
    Event,
    Fault,
    Finished,
    Observer,
    Redirected,
    ResourceFact,
    Resumed,
    Started,
    VerdictFact,
)
from asmevo.search.executor import Executor
from asmevo.search.gains import promise
from asmevo.search.interrupt import uninterrupted
from asmevo.search.journal import Journal
from asmevo.search.lineage import Node, Resources, windows_of
from asmevo.search.planner import Plan, Planner
from asmevo.search.state import Flight, State

_E = TypeVar("_E", bound=Event)
_GLANCE = 0.05  # seconds until the other workers are looked at again
_FAULTS_OF_ONE = 3  # an assignment that costs so many workers is given up


@dataclass(frozen=True)
class Composing:
    """How verified candidates are composed: at most ``parts`` of them, and ``attempts`` to judge.

    0 parts switch it off.
    """

    parts: int = 16
    attempts: int = 24


@dataclass
class Controller:
    """Runs a search until the budget or the proposers are exhausted.

    A candidate that passes G0 to G3 goes through G4 here, against the best verified so far at that
    moment, and becomes a node of the lineage when it passes. Every event goes into ``journal``
    before anything is made of it, and to ``observer`` behind that. A worker that gives nothing for
    ``patience`` seconds is ended. Results are taken in turns that do not depend on time (`Turns`),
    or with ``arrival`` as they come: then no worker ever waits, and no two runs are the same.
    """

    state: State
    commit_gate: CommitGate
    planner: Planner
    executor: Executor
    journal: Journal
    observer: Observer
    started: Started
    workers: int = 1
    composing: Composing = field(default_factory=Composing)
    patience: float = 600.0
    arrival: bool = False
    as_built: Callable[[Node], Node] = lambda node: node
    _heard: dict[int, float] = field(default_factory=dict, init=False)

    def run(self, earlier: float = 0.0) -> str:
        """Search; gives why it ended, see `Ended`. ``earlier`` seconds were used before.

        Ctrl-C is an end like another, but for being raised again.
        """
        state = self.state
        state.budget.start(earlier)
        if state.started is None:
            self._emit(self.started)
        else:
            self._emit(Resumed(attempts_used=state.budget.used))
        try:
            for _, flight in sorted(state.flights.items()):
                self.executor.give(flight.again())
            why = self._search()
        except KeyboardInterrupt:
            with uninterrupted():
                self._end("interrupted")
            raise
        with uninterrupted():
            self._end(why)
        return why

    def _search(self) -> str:
        state = self.state
        while (spent := state.budget.exhausted()) is None:
            if state.supervision.faults_in_a_row >= state.supervision.thresholds.most_faults:
                return "faults"
            self._supervise()
            self._assign()
            if not state.flights:
                starts = state.supervision.escalate(state.lineage, exhausted=True)
                if starts is None:
                    return "exhausted"
                self._escalate(starts, "nothing is left to try")
                continue
            worker, step = self._arrived() if self.arrival else (None, None)
            if worker is None or step is None:
                worker = state.turns.first(state.flights)
                step = self._next(worker, _GLANCE if self.arrival else math.inf)
            if step is not None:
                self._heard[worker] = state.budget.elapsed
                with uninterrupted():
                    self._take(state.flights[worker], step)
        return spent

    # -- what is to be done ----------------------------------------------------------------------

    def _assign(self) -> None:
        """Give every free worker something to do, as far as there is something."""
        state = self.state
        for worker in range(self.workers):
            if worker in state.flights:
                continue
            parts = self._parts()
            if parts:
                plan: Plan | None = Plan(
                    state.lineage.best.number, (),
                    min(self.composing.attempts, max(1, state.budget.left)), "best")
            else:
                plan = self.planner.plan(worker, state.view())
            if plan is None:
                continue
            number = state.assignments + 1
            self._emit(Assigned(
                assignment=number, worker=worker, base=plan.base,
                directions=tuple(d.value for d in plan.directions), attempts=plan.attempts,
                target=self._target(), seed=state.seed_of(number, worker), policy=plan.policy,
                level=state.supervision.level, parts=tuple(part.candidate for part in parts)))
            self._heard[worker] = state.budget.elapsed
            self.executor.give(state.flights[worker].assignment)

    def _parts(self) -> tuple[Part, ...]:
        """What is worth composing on the best node now, if anything."""
        state = self.state
        if not self.composing.parts or any(f.event.parts for f in state.flights.values()):
            return ()
        best = state.lineage.best
        parts = state.gains.on(state.lineage, best)[:self.composing.parts]
        if not state.gains.fresh(best.number, parts):
            return ()
        return parts if promise(parts) * best.speedup >= self._target() else ()

    def _target(self) -> float:
        """The least speedup that may be committed now."""
        return self.commit_gate.threshold(self.state.lineage.best.speedup, 0.0)

    def _supervise(self) -> None:
        supervision, lineage = self.state.supervision, self.state.lineage
        if (starts := supervision.escalate(lineage)) is not None:
            self._escalate(starts, f"{supervision.thresholds.redirects} redirects did not help")
        elif (due := supervision.redirect(lineage, self.state.memory)) is not None:
            self._emit(Redirected(
                reason=due.reason, action=due.action, count=due.count, summary=due.summary,
                exhausted=due.exhausted, dry=due.dry, hopeless=due.hopeless))

    def _escalate(self, starts: tuple[int, ...], reason: str) -> None:
        self._emit(Escalated(
            level=self.state.supervision.level + 1, starts=starts, attempts=self.state.attempts,
            reason=reason))

    # -- what came back --------------------------------------------------------------------------

    def _next(self, worker: int, most: float = math.inf) -> Step | None:
        """A worker's next result; ``None`` when there is none within ``most`` seconds, or when the
        time is up before."""
        budget = self.state.budget
        started = budget.elapsed
        # In turns, a worker is waited for only now: it may have had results for long.
        since = self._heard.get(worker, started) if self.arrival else started
        while (now := budget.elapsed) < budget.seconds:
            waited = now - since
            if waited >= self.patience:
                self.executor.restart(worker)
                number = self.state.flights[worker].event.assignment
                return Lost(number, f"the worker gave nothing for {waited:.0f} s")
            timeout = min(self.patience - waited, budget.seconds - now, most, 60.0)
            if (step := self.executor.take(worker, timeout)) is not None:
                return step
            if budget.elapsed - started >= most:
                break
        return None

    def _arrived(self) -> tuple[int, Step] | tuple[None, None]:
        """What is there already, of the worker that is furthest behind."""
        flights = self.state.flights
        for worker in self.state.turns.order(flights):
            if (step := self.executor.take(worker, 0.0)) is not None:
                return worker, step
        return None, None

    def _take(self, flight: Flight, step: Step) -> None:
        match step:
            case Attempt():
                self._judge(flight, step)
            case Finish():
                self._finish(flight, step)
            case Lost():
                abandoned = flight.faults + 1 >= _FAULTS_OF_ONE
                self._emit(Fault(
                    assignment=flight.event.assignment, worker=flight.event.worker,
                    reason=step.reason, abandoned=abandoned))
                if not abandoned and self.state.budget.left:
                    self.executor.give(flight.again())

    def _judge(self, flight: Flight, attempt: Attempt) -> None:
        state = self.state
        number = state.attempts + 1
        duplicate = state.memory.known(attempt.fingerprint)
        candidate = "" if duplicate else f"{self.run_id}-{number:05d}"
        parents = state.named(attempt.base, attempt.parents)
        best = state.lineage.best.speedup
        verdicts = attempt.verdicts
        node: Node | None = None
        if attempt.passed and not duplicate:
            last = self._commits(attempt, best)
            verdicts = (*verdicts, last)
            if last.passed:
                node = self._node(replace(attempt, parents=parents), candidate)
        proposal = attempt.proposal
        windows = windows_of(proposal.edits)
        event = self._numbered(Attempted(
            attempt=number, assignment=flight.event.assignment, worker=attempt.worker,
            base=attempt.base, candidate=candidate, proposer=proposal.proposer,
            rule=proposal.rule, direction=proposal.direction.value, rationale=proposal.rationale,
            assumption=proposal.assumption, fingerprint=attempt.fingerprint,
            verdicts=tuple(_fact(verdict) for verdict in verdicts), edits=len(proposal.edits),
            windows=windows, speedup=attempt.speedup, sha256=attempt.sha256,
            took=attempt.seconds, proposing=attempt.proposing, duplicate=duplicate,
            node=node.number if node else None,
            gain=math.log(node.speedup / best) if node else 0.0, tokens=attempt.spent.tokens,
            cost=attempt.spent.cost, parents=parents))
        events: list[AnyEvent] = [event]
        if node is not None:
            events.append(self._numbered(Committed(
                node=node.number, parent=attempt.base, candidate=candidate, sha256=node.sha256,
                speedup=node.speedup, before=best, worker=attempt.worker,
                proposer=proposal.proposer, rule=proposal.rule,
                direction=proposal.direction.value, rationale=proposal.rationale,
                assumption=proposal.assumption, windows=windows,
                resources=fact_of(node.resources), parents=parents), 1))
        # The candidate is recorded with all its verdicts, G4 among them.
        kept = None if duplicate else replace(attempt, verdicts=verdicts, parents=parents)
        self._write(events, kept, node)

    def _commits(self, attempt: Attempt, best: float) -> Verdict:
        verdict = self.commit_gate.judge(attempt.speedup, attempt.timings, best)
        parent = max((p.speedup for p in attempt.parents), default=0.0)
        if verdict.passed and attempt.speedup is not None and attempt.speedup <= parent:
            return Verdict(
                Gate.G4, Outcome.FAIL, "not-better-than-parents",
                f"{attempt.speedup:.4f}x does not beat both parents of the composition "
                f"({parent:.4f}x)", verdict.evidence)
        return verdict

    def _node(self, attempt: Attempt, candidate: str) -> Node:
        assert attempt.assembly is not None
        assert attempt.code is not None
        assert attempt.sha256 is not None
        assert attempt.speedup is not None
        assert attempt.resources is not None
        proposal = attempt.proposal
        return self.as_built(Node(
            number=len(self.state.lineage), parent=attempt.base, assembly=attempt.assembly,
            code=attempt.code, sha256=attempt.sha256, speedup=attempt.speedup,
            resources=attempt.resources, edits=proposal.edits, rule=proposal.rule,
            direction=proposal.direction, rationale=proposal.rationale,
            assumption=proposal.assumption, proposer=proposal.proposer, candidate=candidate,
            parents=attempt.parents,
        ))

    def _finish(self, flight: Flight, finish: Finish) -> None:
        event = flight.event
        events: list[AnyEvent] = []
        if event.parts:
            events.append(self._numbered(Composed(
                assignment=event.assignment, worker=event.worker, base=event.base,
                parts=event.parts, kept=finish.kept, speedup=finish.speedup,
                node=flight.last_node)))
        events.append(self._numbered(Finished(
            assignment=event.assignment, worker=event.worker, exhausted=finish.exhausted,
            duplicates=finish.duplicates, blocked=finish.blocked, busy=finish.busy,
            gates=finish.gates, proposing=finish.proposing, tokens=finish.spent.tokens,
            cost=finish.spent.cost),
            len(events)))
        self._write(events)

    # -- events ----------------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        return self.started.run_id

    def _end(self, why: str) -> None:
        tally, best = self.state.tally, self.state.lineage.best
        self._emit(Ended(
            why=why, attempts=tally.attempts, duplicates=tally.duplicates, faults=tally.faults,
            commits=tally.commits, best=best.number, speedup=best.speedup))

    def _emit(self, event: AnyEvent) -> None:
        self._write([self._numbered(event)])

    def _numbered(self, event: _E, behind: int = 0) -> _E:
        return replace(event, number=self.state.events + behind,
                       seconds=self.state.budget.elapsed)

    def _write(self, events: list[AnyEvent], attempt: Attempt | None = None,
               node: Node | None = None) -> None:
        with uninterrupted():
            self.journal.write(events, attempt, node)
            for event in events:
                self.state.apply(event, attempt=attempt, node=node)
            for event in events:
                self.observer.happened(event)


def fact_of(resources: Resources) -> ResourceFact:
    return ResourceFact(resources.vgprs, resources.sgprs, resources.lds_bytes)


def _fact(verdict: Verdict) -> VerdictFact:
    return VerdictFact(verdict.gate.value, verdict.outcome.value, verdict.code, verdict.reason)


