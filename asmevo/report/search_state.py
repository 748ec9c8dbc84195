"""What a search has come to so far, added up from its events; display and report both show it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from asmevo.gates.verdict import Gate, Outcome
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
    ResourceFact,
    Resumed,
    Started,
    VerdictFact,
)

Windows = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class NodeState:
    """A node of the lineage and when it was found; ``attempt`` is 0 for the original."""

    number: int
    parent: int | None
    speedup: float
    sha256: str
    rule: str = ""
    proposer: str = ""
    direction: str = ""
    rationale: str = ""
    assumption: str = ""
    worker: int | None = None
    candidate: str = ""
    attempt: int = 0
    seconds: float = 0.0
    windows: Windows = ()
    resources: ResourceFact = field(default_factory=ResourceFact)
    parents: tuple[ParentFact, ...] = ()
    tried: int = 0   # candidates made from it


@dataclass(slots=True)
class WorkerState:
    """What one worker does and has done. ``rejected`` counts by the gate that said no."""

    number: int
    directions: tuple[str, ...] = ()
    base: int = 0
    parts: int = 0
    attempts: int = 0
    commits: int = 0
    duplicates: int = 0
    faults: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    best: float | None = None
    rule: str = ""
    windows: Windows = ()
    working: bool = False
    busy: float = 0.0
    gates: float = 0.0


@dataclass(slots=True)
class Record:
    """Of a rule, a proposer or a direction: candidates, those that passed G0 to G3, commits, the
    logarithm of what its commits gained, and seconds of judging; ``tokens`` and ``cost`` where
    proposing has a price.
    """

    proposed: int = 0
    passed: int = 0
    accepted: int = 0
    gain: float = 0.0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """A candidate that was timed, or a commit when ``node`` is set."""

    attempt: int
    seconds: float
    speedup: float
    node: int | None
    rule: str
    worker: int


@dataclass(frozen=True, slots=True)
class Moment:
    """Something to tell: ``kind`` is the event's, ``text`` one line."""

    seconds: float
    attempt: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a search may spend; 0 and ``None``: as much as it likes."""

    attempts: int = 0
    seconds: float = 0.0
    tokens: int | None = None
    cost: float | None = None


@dataclass
class SearchState:
    """An observer of a search. ``verdicts[gate][outcome]`` counts candidates, not repeats;
    ``reasons[gate, code]`` the candidates that a gate stopped for it. ``bounds`` are those of the
    first sitting until they are set.
    """

    started: Started | None = None
    ended: Ended | None = None
    bounds: Bounds = Bounds()
    seconds: float = 0.0
    used: int = 0
    judged: int = 0
    duplicates: int = 0
    not_proposed: int = 0
    faults: int = 0
    tokens: int = 0
    cost: float = 0.0
    sittings: int = 1
    level: int = 0
    nodes: list[NodeState] = field(default_factory=list)
    workers: dict[int, WorkerState] = field(default_factory=dict)
    verdicts: dict[str, Counter[str]] = field(
        default_factory=lambda: {gate.value: Counter() for gate in Gate})
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)
    rules: dict[str, Record] = field(default_factory=dict)
    proposers: dict[str, Record] = field(default_factory=dict)
    directions: dict[str, Record] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    @classmethod
    def of(cls, events: Iterable[AnyEvent]) -> SearchState:
        state = cls()
        for event in events:
            state.happened(event)
        return state

    @property
    def best(self) -> NodeState | None:
        """The fastest node; the earliest of equals."""
        return max(self.nodes, key=lambda node: (node.speedup, -node.number), default=None)

    @property
    def commits(self) -> int:
        return max(len(self.nodes) - 1, 0)

    def happened(self, event: AnyEvent) -> None:
        """Take one more event into account."""
        self.seconds = max(self.seconds, event.seconds)
        match event:
            case Started():
                self._started(event)
            case Resumed():
                self.sittings += 1
                self.used = max(self.used, event.attempts_used)
                self.ended = None
                self._tell(event, f"resumed after {event.attempts_used} attempts")
            case Assigned():
                self._assigned(event)
            case Attempted():
                self._attempted(event)
            case Finished():
                self._finished(event)
            case Committed():
                self._committed(event)
            case Composed():
                # Most bring nothing, and what they bring is a commit besides.
                if event.node is not None:
                    self._tell(event, f"{counted(len(event.kept), 'candidate')} of "
                               f"{len(event.parts)} composed on node {event.base}: "
                               f"{event.speedup:.4f}x")
            case Redirected():
                what = f": {event.summary[0]}" if event.summary else ""
                self._tell(event, f"redirect after {event.count} ({event.reason}), "
                           f"{event.action}{what}")
            case Escalated():
                self.level = event.level
                starts = ", ".join(map(str, event.starts))
                self._tell(event, f"escalation to level {event.level} from nodes {starts}")
            case Fault():
                self._fault(event)
            case Ended():
                self.ended = event
                for worker in self.workers.values():
                    worker.working = False

    def _tell(self, event: AnyEvent, text: str) -> None:
        self.moments.append(Moment(event.seconds, self.judged + self.duplicates, event.kind, text))

    def _worker(self, number: int) -> WorkerState:
        return self.workers.setdefault(number, WorkerState(number))

    def _started(self, event: Started) -> None:
        self.started = event
        self.bounds = Bounds(event.attempts, event.budget_seconds, event.tokens, event.cost)
        self.nodes = [NodeState(0, None, 1.0, event.original_sha256, rationale="the original",
                                resources=event.resources)]

    def _assigned(self, event: Assigned) -> None:
        worker = self._worker(event.worker)
        worker.directions, worker.base = event.directions, event.base
        worker.parts = len(event.parts)
        worker.windows, worker.working = (), True

    def _attempted(self, event: Attempted) -> None:
        self.used += 1
        self.tokens += event.tokens
        self.cost += event.cost
        worker = self._worker(event.worker)
        if event.duplicate:
            self.duplicates += 1
            worker.duplicates += 1
            return
        self.judged += 1
        worker.attempts += 1
        worker.rule, worker.windows = event.rule, event.windows
        if event.base < len(self.nodes):
            self.nodes[event.base].tried += 1
        # Of a gate's repeats the last one decides: they stop at the first that does not pass.
        for gate, verdict in {v.gate: v for v in event.verdicts}.items():
            self.verdicts.setdefault(gate, Counter())[verdict.outcome] += 1
        stopped = next((v for v in event.verdicts if v.outcome != Outcome.PASS), None)
        if stopped is not None:
            worker.rejected[stopped.gate] += 1
            self._stopped(stopped)
        passed = event.speedup is not None and (stopped is None or stopped.gate == Gate.G4)
        for record in self._records(event.rule, event.proposer, event.direction):
            record.proposed += 1
            record.passed += passed
            record.seconds += event.took
            record.tokens += event.tokens
            record.cost += event.cost
        if passed and event.speedup is not None:
            worker.best = max(worker.best or 0.0, event.speedup)
            self.points.append(Point(event.attempt, event.seconds, event.speedup, event.node,
                                     event.rule, event.worker))

    def _stopped(self, verdict: VerdictFact) -> None:
        key = (verdict.gate, verdict.code)
        self.reasons[key] += 1
        self.examples.setdefault(key, verdict.reason)

    def _records(self, rule: str, proposer: str, direction: str) -> tuple[Record, ...]:
        return (self.rules.setdefault(rule, Record()),
                self.proposers.setdefault(proposer or "unknown", Record()),
                self.directions.setdefault(direction or "none", Record()))

    def _finished(self, event: Finished) -> None:
        worker = self._worker(event.worker)
        worker.working = False
        worker.busy += event.busy
        worker.gates += event.gates
        self.not_proposed += event.duplicates + event.blocked
        self.tokens += event.tokens
        self.cost += event.cost

    def _committed(self, event: Committed) -> None:
        # Node numbers are positions: what does not fit would make every later line wrong.
        if event.node != len(self.nodes) or not 0 <= event.parent < event.node:
            return
        worker = self._worker(event.worker)
        worker.commits += 1
        self.nodes.append(NodeState(
            event.node, event.parent, event.speedup, event.sha256, event.rule, event.proposer,
            event.direction, event.rationale, event.assumption, event.worker, event.candidate,
            self.judged + self.duplicates, event.seconds, event.windows, event.resources,
            event.parents))
        gain = math.log(event.speedup / event.before) if event.before > 0 else 0.0
        for record in self._records(event.rule, event.proposer, event.direction):
            record.accepted += 1
            record.gain += max(gain, 0.0)
        self._tell(event, f"node {event.node}  {event.speedup:.4f}x  {event.rule} on node "
                   f"{event.parent} (worker {event.worker})")

    def _fault(self, event: Fault) -> None:
        self.faults += 1
        self.used += 1
        worker = self._worker(event.worker)
        worker.faults += 1
        worker.working = False
        given_up = "; its assignment is given up" if event.abandoned else ""
        self._tell(event, f"worker {event.worker} was lost: {event.reason}{given_up}")


def counted(count: int, what: str) -> str:
    """``1 commit``, ``2 commits``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
