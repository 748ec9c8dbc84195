"""The loop of a worker: ask, apply, judge, tell."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from typing import Protocol

from asmevo.codeobject.assembly import Assembly, EditError
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.propose.proposal import Feedback, Proposal, Proposals, Spending
from asmevo.search.attempt import Assignment, Attempt, Finish
from asmevo.search.composition import Integration, Step
from asmevo.search.events import ParentFact
from asmevo.search.fingerprint import fingerprint
from asmevo.search.memory import stopped_by


class Bench(Protocol):
    """Where candidates of one kernel are proposed and judged."""

    @property
    def kernel(self) -> str: ...

    @property
    def proposer_name(self) -> str:
        """Who proposes what names no proposer itself."""
        ...

    @property
    def spent(self) -> Spending:
        """What its proposer has spent so far."""
        ...

    def prepared(self, assignment: Assignment) -> Assignment:
        """The assignment with its base's text as its object has it."""
        ...

    def propose(self, assignment: Assignment) -> Proposals: ...

    def judge(self, assignment: Assignment, proposal: Proposal, assembly: Assembly,
              mark: str) -> Attempt: ...


def explore(bench: Bench, assignment: Assignment) -> Generator[Attempt, None, Finish]:
    """Judge candidates until one reaches the target speedup, the attempts are used up or nothing
    new comes; each is yielded at once."""
    started = time.perf_counter()
    assignment = bench.prepared(assignment)
    source = _Source(bench, assignment)
    seen = set(assignment.seen)
    known = dict(assignment.known)
    left = assignment.attempts - assignment.done
    skip = assignment.skip
    # Attempts of an earlier sitting that are still to come by again.
    owed = skip + sum(judged.own for judged in known.values())
    gates = proposing = 0.0
    duplicates = blocked = barren = 0
    exhausted = reached = False
    feedback: Feedback | None = None
    while (left > 0 or owed > 0) and not reached:
        asked = time.perf_counter()
        proposal = source.next(feedback)
        proposing += time.perf_counter() - asked
        if proposal is None:
            exhausted = True
            break
        if not proposal.proposer:
            proposal = replace(proposal, proposer=bench.proposer_name)
        feedback = None
        barren += 1
        if barren > assignment.barren:
            exhausted = True
            break
        wanted = assignment.directions
        if wanted and not assignment.parts and proposal.direction not in wanted:
            continue
        assembly, mark, refused = _applied(assignment, proposal, bench.kernel)
        if (judged := known.pop(mark, None)) is not None:
            feedback = judged.feedback(proposal)
            seen.add(mark)
            reached = judged.own and feedback.passed and _fast(judged.speedup, assignment)
            barren = 0 if judged.own else barren
            owed -= judged.own
            continue
        if mark in seen:
            duplicates += 1
            feedback = Feedback(proposal, duplicate=True)
            continue
        block = stopped_by(assignment.blocked, proposal.rule, proposal.edits)
        if block is not None and not assignment.parts:
            blocked += 1
            feedback = Feedback(
                proposal, block.gate, "repeated-failure",
                f"{proposal.rule} failed {block.count} times here with {block.code}, and never "
                "passed")
            continue
        seen.add(mark)
        if skip:
            skip -= 1
            owed -= 1
            feedback = Feedback(proposal, duplicate=True)
            continue
        if left <= 0:
            # A proposer that does not repeat itself.
            break
        if refused is not None:
            attempt = Attempt(assignment.worker, assignment.base.number, proposal, mark, (refused,))
        else:
            attempt = bench.judge(assignment, proposal, assembly, mark)
        feedback = attempt.judged().feedback(proposal)
        gates += attempt.seconds
        barren = 0
        left -= 1
        reached = attempt.passed and _fast(attempt.speedup, assignment)
        # With the attempt and not with the end, which a search that is over does not wait for.
        taken, proposing = proposing, 0.0
        yield replace(attempt, proposing=taken, spent=source.spending(), parents=source.parents,
                      assignment=assignment.number)
        if source.overspent():
            break
    source.close()
    return Finish(
        assignment.number, exhausted, duplicates, blocked, time.perf_counter() - started, gates,
        proposing, source.spending(), source.kept, source.speedup)


class _Source:
    """Where an assignment's proposals come from: the proposer, or the integrator."""

    def __init__(self, bench: Bench, assignment: Assignment) -> None:
        self._bench = bench
        self._assignment = assignment
        self._spent = self._first = bench.spent
        self.parents: tuple[ParentFact, ...] = ()
        self._integration: Integration | None = None
        if assignment.parts:
            base = assignment.base
            self._integration = Integration(
                ParentFact(base.candidate, base.speedup, base.number, base.rule), assignment.parts)
            self._steps: Generator[Step, Feedback | None, None] = self._integration.steps()
        else:
            self._proposals = bench.propose(assignment)

    def next(self, feedback: Feedback | None) -> Proposal | None:
        try:
            if self._integration is None:
                return self._proposals.send(feedback)
            step = self._steps.send(feedback)
        except StopIteration:
            return None
        self.parents = step.parents
        return step.proposal

    def spending(self) -> Spending:
        """What was spent since this was last asked."""
        now = self._bench.spent
        before, self._spent = self._spent, now
        return now - before

    def overspent(self) -> bool:
        spent = self._bench.spent - self._first
        tokens, cost = self._assignment.tokens, self._assignment.cost
        return (tokens is not None and spent.tokens >= tokens) or (
            cost is not None and spent.cost >= cost)

    @property
    def kept(self) -> tuple[str, ...]:
        if self._integration is None:
            return ()
        return tuple(part.candidate for part in self._integration.kept)

    @property
    def speedup(self) -> float:
        return 1.0 if self._integration is None else self._integration.speedup

    def close(self) -> None:
        if self._integration is None:
            self._proposals.close()
        else:
            self._steps.close()


def _applied(
    assignment: Assignment, proposal: Proposal, kernel: str
) -> tuple[Assembly, str, Verdict | None]:
    base = assignment.base
    try:
        if proposal.refusal:
            raise EditError(proposal.refusal)
        assembly = base.assembly.apply(proposal.edits)
    except EditError as error:
        verdict = Verdict(Gate.G0, Outcome.FAIL, "edit-refused", str(error))
        mark = fingerprint(base.assembly, kernel) + repr((proposal.edits, proposal.refusal))
        return base.assembly, mark, verdict
    return assembly, fingerprint(assembly, kernel), None


def _fast(speedup: float | None, assignment: Assignment) -> bool:
    return (speedup or 0.0) >= assignment.target
