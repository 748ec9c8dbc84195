"""The deterministic controller: it owns budget, commits, lineage and the end of the search."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from asmevo.gates.commit import CommitGate
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.search.attempt import Attempt, Report
from asmevo.search.budget import Budget
from asmevo.search.executor import Executor
from asmevo.search.interrupt import uninterrupted
from asmevo.search.lineage import Lineage, Node
from asmevo.search.memory import Memory
from asmevo.search.planner import Planner


class Observer(Protocol):
    """Is told every event of a search, in order: the registry and the display."""

    def attempted(self, attempt: Attempt, verdicts: tuple[Verdict, ...], node: Node | None) -> None:
        """``verdicts`` include G4 where it was reached; ``node`` is set for a commit."""
        ...


@dataclass
class Tally:
    """Counts of one search. ``verdicts[gate][outcome]`` counts candidates, not repeats."""

    attempts: int = 0
    duplicates: int = 0
    faults: int = 0
    commits: int = 0
    verdicts: dict[Gate, Counter[Outcome]] = field(
        default_factory=lambda: {gate: Counter() for gate in Gate}
    )
    proposed: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)

    def count(self, attempt: Attempt, verdicts: tuple[Verdict, ...], committed: bool) -> None:
        self.attempts += 1
        self.proposed[attempt.proposal.rule] += 1
        # Of a gate's repeats the last one decides: they stop at the first that does not pass.
        for gate, verdict in {v.gate: v for v in verdicts}.items():
            self.verdicts[gate][verdict.outcome] += 1
        if committed:
            self.commits += 1
            self.accepted[attempt.proposal.rule] += 1


@dataclass
class Controller:
    """Runs a search from ``lineage.root`` until the budget or the proposers are exhausted.

    A candidate that passes G0 to G3 goes through G4 here, against the best verified so far at that
    moment, and becomes a node of the lineage when it passes.
    """

    lineage: Lineage
    commit_gate: CommitGate
    planner: Planner
    executor: Executor
    budget: Budget
    observer: Observer
    memory: Memory = field(default_factory=Memory)
    tally: Tally = field(default_factory=Tally)

    def run(self) -> str:
        """Search; gives why it ended: ``exhausted``, ``attempts`` or ``seconds``."""
        self.budget.start()
        while (spent := self.budget.exhausted()) is None:
            target = self.commit_gate.threshold(self.lineage.best.speedup, 0.0)
            assignments = self.planner.plan(
                self.lineage, self.memory, attempts=self.budget.left, target=target
            )
            if not assignments:
                return "exhausted"
            for report in self.executor.run(assignments):
                self._take(report)
                # A worker's report may hold several attempts, which were made in any case; the
                # clock is looked at between reports.
                if self.budget.exhausted() is not None:
                    break
        return spent

    def _take(self, report: Report) -> None:
        if report.fault:
            self.tally.faults += 1
            self.budget.used += 1
        for attempt in report.attempts:
            with uninterrupted():
                self._judge(attempt)
        if report.exhausted:
            self.memory.mark_dry(report.assignment.base.number, report.assignment.directions)

    def _judge(self, attempt: Attempt) -> None:
        self.budget.used += 1
        if self.memory.known(attempt):
            self.tally.duplicates += 1
            return
        verdicts = attempt.verdicts
        node = None
        if attempt.passed:
            last = self.commit_gate.judge(
                attempt.speedup, attempt.timings, self.lineage.best.speedup
            )
            verdicts = (*verdicts, last)
            if last.passed:
                node = self._node(attempt)
                self.lineage.add(node)
        self.memory.remember(attempt)
        self.tally.count(attempt, verdicts, node is not None)
        self.observer.attempted(attempt, verdicts, node)

    def _node(self, attempt: Attempt) -> Node:
        assert attempt.code is not None
        assert attempt.sha256 is not None
        assert attempt.speedup is not None
        assert attempt.resources is not None
        return Node(
            number=len(self.lineage), parent=attempt.base, assembly=attempt.assembly,
            code=attempt.code, sha256=attempt.sha256, speedup=attempt.speedup,
            resources=attempt.resources, edits=attempt.proposal.edits,
            rule=attempt.proposal.rule, direction=attempt.proposal.direction,
            rationale=attempt.proposal.rationale, assumption=attempt.proposal.assumption,
        )
