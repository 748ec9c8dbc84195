"""A kernel that costs what its lines say, judged at once: searches without a device.

Line ``i`` is ``s_nop <cost>`` and belongs to direction ``i % 5``. The kernel takes the sum of all
costs. A line below its floor makes it wrong, and so do two lines that rely on each other.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody, Line
from asmevo.device.device import Timing, TimingSource
from asmevo.gates.commit import CommitGate
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.propose.proposal import Direction, Proposal, Proposals, Spending
from asmevo.search.attempt import Assignment, Attempt, Finish
from asmevo.search.budget import Budget
from asmevo.search.controller import Composing, Controller
from asmevo.search.events import AnyEvent, Started
from asmevo.search.executor import Executor, InlineExecutor
from asmevo.search.explore import explore
from asmevo.search.fingerprint import fingerprint
from asmevo.search.journal import Journal
from asmevo.search.lineage import Lineage, Node, Resources
from asmevo.search.planner import GreedyPlanner, Planner
from asmevo.search.state import State
from asmevo.search.supervision import Supervision, Thresholds
from tests.search.memory_journal import MemoryJournal

KERNEL = "k"
RESOURCES = Resources(8, 16, 0)
LINES = 25
COST = 40


def assembly(costs: Sequence[int]) -> Assembly:
    lines = tuple(Line(f"s_nop {cost}") for cost in costs)
    return Assembly("0" * 64, (KernelBody(KERNEL, lines),))


def costs_of(text: Assembly) -> tuple[int, ...]:
    return tuple(int(line.text.split()[1]) for line in text.body(KERNEL).lines)


def root(costs: Sequence[int] = (COST,) * LINES) -> Node:
    return Node(0, None, assembly(costs), repr(tuple(costs)).encode(), "0" * 64, 1.0, RESOURCES)


def judged(base: int, worker: int, proposal: Proposal, mark: str, text: Assembly, speedup: float,
           fails: tuple[Gate, str] | None = None) -> Attempt:
    """A candidate that fails at a gate, or passes G0 to G3 with a speedup."""
    verdicts: list[Verdict] = []
    for gate in (Gate.G0, Gate.G1, Gate.G2, Gate.G2, Gate.G2, Gate.G3):
        failed = fails is not None and gate is fails[0]
        outcome = Outcome.FAIL if failed else Outcome.PASS
        code = fails[1] if fails is not None and failed else "ok"
        verdicts.append(Verdict(gate, outcome, code, "scripted"))
        if failed:
            break
    passed = fails is None
    return Attempt(
        worker, base, proposal, mark, tuple(verdicts), assembly=text if passed else None,
        code=repr(costs_of(text)).encode(), sha256=mark.rjust(64, "0"),
        speedup=speedup if passed else None,
        timings=((Timing("d", (1000.0,), TimingSource.MODELLED, "fake"),
                  Timing("d", (1000.0 / speedup,), TimingSource.MODELLED, "fake")),)
        if passed else (),
        resources=RESOURCES)


@dataclass
class FakeBench:
    """Proposes to make single lines cheaper, some of them too cheap.

    ``clashes`` are pairs of lines that may not both be changed, ``steps`` by how much a line may
    get cheaper at once. Candidates that change line ``poison`` kill the process, as long as the
    file ``alive`` exists; those of line ``slow`` take 0.2 s.
    """

    costs: tuple[int, ...] = (COST,) * LINES
    floor: int = 30
    clashes: tuple[tuple[int, int], ...] = ()
    steps: tuple[int, ...] = (1, 2, 12)
    limit: int = 40
    poison: int | None = None
    slow: int | None = None
    alive: Path | None = None
    tokens: int = 0
    kernel: str = KERNEL
    proposer_name: str = "fake"
    judged: list[str] = field(default_factory=list)
    asked: list[Assignment] = field(default_factory=list)
    _spent: Spending = field(default_factory=Spending)

    @property
    def spent(self) -> Spending:
        return self._spent

    def explore(self, assignment: Assignment) -> Generator[Attempt, None, Finish]:
        return explore(self, assignment)

    def prepared(self, assignment: Assignment) -> Assignment:
        return assignment

    def propose(self, assignment: Assignment) -> Proposals:
        self.asked.append(assignment)
        dice = random.Random(assignment.seed)
        now = costs_of(assignment.base.assembly)
        for _ in range(self.limit):
            index = dice.randrange(len(now))
            direction = tuple(Direction)[index % 5]
            if assignment.directions and direction not in assignment.directions:
                continue
            step = dice.choice(self.steps)
            self._spent += Spending(self.tokens, self.tokens * 0.01)
            yield Proposal(
                (Edit(KERNEL, index, index + 1, (f"s_nop {now[index] - step}",), "cheaper"),),
                f"cheaper-{step}", direction, f"line {index} by {step}")

    def judge(self, assignment: Assignment, proposal: Proposal, assembly: Assembly,
              mark: str) -> Attempt:
        now = costs_of(assembly)
        changed = {i for i, (old, new) in enumerate(zip(self.costs, now, strict=True))
                   if old != new}
        if self.poison in changed and self.alive is not None and self.alive.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        if any(edit.start == self.slow for edit in proposal.edits):
            time.sleep(0.2)
        self.judged.append(mark)
        fails: tuple[Gate, str] | None = None
        if min(now) < self.floor or any(set(pair) <= changed for pair in self.clashes):
            fails = (Gate.G2, "unequal")
        return judged(assignment.base.number, assignment.worker, proposal, mark, assembly,
                      sum(self.costs) / sum(now), fails)


class Watcher:
    """Keeps the events that an observer is told."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []

    def happened(self, event: AnyEvent) -> None:
        self.events.append(event)


def state(start: Node, *, attempts: int = 100, seed: int = 0, budget: Budget | None = None,
          thresholds: Thresholds | None = None) -> State:
    return State(
        Lineage(start), budget or Budget(attempts=attempts, seconds=600.0), seed=seed,
        supervision=Supervision(thresholds),
        root_fingerprint=fingerprint(start.assembly, KERNEL))


def controller(
    bench: FakeBench | None = None, *, executor: Executor | None = None,
    planner: Planner | None = None, workers: int = 1, journal: Journal | None = None,
    of: State | None = None, composing: Composing | None = None,
    gate: CommitGate | None = None, patience: float = 600.0, attempts: int = 100, seed: int = 0,
) -> Controller:
    bench = bench or FakeBench()
    return Controller(
        of or state(root(bench.costs), attempts=attempts, seed=seed), gate or CommitGate(),
        planner or GreedyPlanner(), executor or InlineExecutor(bench),
        journal or MemoryJournal(), Watcher(),
        Started(run_id="run", kernel=KERNEL, original_sha256="0" * 64), workers=workers,
        composing=composing or Composing(), patience=patience)


def lineage_of(made: Controller) -> list[tuple[int | None, float, tuple[int, ...]]]:
    """What two equal searches have in common."""
    return [(node.parent, node.speedup, costs_of(node.assembly)) for node in made.state.lineage]


def facts(events: Sequence[AnyEvent]) -> list[dict[str, object]]:
    """Events without what a clock says."""
    out = []
    for event in events:
        data = event.to_json()
        for name in ("number", "seconds", "took", "busy", "gates", "proposing"):
            data.pop(name, None)
        out.append(data)
    return out
