"""Noticing that a search goes nowhere, and changing its course."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from asmevo.errors import AsmEvoError
from asmevo.propose.proposal import Direction
from asmevo.search.events import Attempted, Fault, Finished
from asmevo.search.lineage import Lineage
from asmevo.search.memory import Memory
from asmevo.search.policy import Diverse

NO_PROGRESS = "no-progress"
REPEATS = "repeats"
FAULTS = "faults"
CHANGE_TARGET = "change-target"
BACKTRACK = "backtrack"


class SupervisionError(AsmEvoError):
    """A threshold of supervision makes no sense."""


@dataclass(frozen=True)
class Thresholds:
    """When supervision steps in.

    ``no_progress`` attempts without a commit, a share of ``repeats`` among the last ``window``
    proposals (judged before, or of a kind that always fails), or ``faults`` lost workers among the
    last ``window`` attempts are each a reason to redirect. ``hypothesis`` attempts without a gain
    exhaust a direction on a node, and as many that never pass a rule. After ``redirects`` redirects
    without a commit the search escalates, ``levels`` times at most, to ``starts`` nodes.
    ``most_faults`` lost workers in a row end it.
    """

    no_progress: int = 60
    repeats: float = 0.8
    window: int = 40
    faults: int = 3
    hypothesis: int = 10
    redirects: int = 2
    levels: int = 2
    starts: int = 8
    most_faults: int = 20

    def __post_init__(self) -> None:
        for name in ("no_progress", "window", "faults", "hypothesis", "redirects", "starts",
                     "most_faults"):
            if getattr(self, name) < 1:
                raise SupervisionError(
                    f"search.supervision.{name} must be at least 1, not {getattr(self, name)}")
        if not 0.0 < self.repeats <= 1.0 or self.levels < 0:
            raise SupervisionError(
                "search.supervision.repeats must be above 0 and at most 1, and levels not negative")


@dataclass(frozen=True, slots=True)
class Redirect:
    """A change of course; see `Redirected`."""

    reason: str
    action: str
    count: int
    summary: tuple[str, ...]
    exhausted: tuple[str, ...]
    dry: tuple[tuple[int, str], ...]
    hopeless: tuple[tuple[int, str, str, str, int], ...] = ()


@dataclass
class _Line:
    """What was tried along one direction, or by one rule, of one node since the last commit."""

    judged: int = 0
    passed: int = 0
    gained: int = 0
    best: float = 0.0
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)

    def count(self, event: Attempted, base: float) -> None:
        self.judged += 1
        self.passed += event.passed
        if event.passed and event.speedup is not None:
            self.best = max(self.best, event.speedup)
            self.gained += event.speedup > base
        elif event.last is not None:
            self.failed[event.last.gate, event.last.code] += 1


class Supervision:
    """Watches events, and says when and how to change course. Made from events alone."""

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self.thresholds = thresholds or Thresholds()
        self.course = ""
        self.level = 0
        self.starts: tuple[int, ...] = ()
        self.since_commit = 0
        self.faults_in_a_row = 0
        self._redirects = 0
        self._judged_at_level = 0
        window = self.thresholds.window
        self._since_redirect = 0
        self._proposals: deque[bool] = deque(maxlen=window)
        self._faults: deque[bool] = deque(maxlen=window)
        self._directions: dict[tuple[int, str], _Line] = {}
        self._rules: dict[tuple[int, str], _Line] = {}

    # -- events ----------------------------------------------------------------------------------

    def attempted(self, event: Attempted, base: float) -> None:
        """``base`` is the speedup of the node that it was made from."""
        self._proposals.append(event.duplicate)
        self._faults.append(False)
        self.faults_in_a_row = 0
        self._judged_at_level += not event.duplicate
        if event.node is not None:
            self._progress()
            return
        self.since_commit += 1
        self._since_redirect += 1
        if event.duplicate or event.parents:
            return
        for lines, key in ((self._directions, event.direction), (self._rules, event.rule)):
            lines.setdefault((event.base, key), _Line()).count(event, base)

    def finished(self, event: Finished) -> None:
        repeats = event.duplicates + event.blocked
        self._proposals.extend([True] * min(repeats, self.thresholds.window))

    def fault(self, event: Fault) -> None:
        self._faults.append(True)
        self.faults_in_a_row += 1
        self.since_commit += 1
        self._since_redirect += 1

    def redirected(self, action: str) -> None:
        self.course = action
        self._redirects += 1
        self._since_redirect = 0
        self._proposals.clear()
        self._faults.clear()

    def escalated(self, level: int, starts: tuple[int, ...]) -> None:
        self.level, self.starts, self.course = level, starts, ""
        self._redirects = 0
        self._since_redirect = 0
        self._judged_at_level = 0
        self._proposals.clear()
        self._directions.clear()
        self._rules.clear()

    def _progress(self) -> None:
        self.course, self.level, self.starts = "", 0, ()
        self._redirects = self.since_commit = self._since_redirect = 0
        self._directions.clear()
        self._rules.clear()

    # -- decisions -------------------------------------------------------------------------------

    def redirect(self, lineage: Lineage, memory: Memory) -> Redirect | None:
        """The change of course that is due, if any."""
        reason, count = self._reason()
        if not reason:
            return None
        dry, exhausted = self._exhausted(memory)
        hopeless = tuple(
            (node, rule, *line.failed.most_common(1)[0][0], line.judged)
            for (node, rule), line in sorted(self._rules.items())
            if line.judged >= self.thresholds.hypothesis and not line.passed and line.failed)
        exhausted += tuple(
            f"{rule} on node {node} never passed in {times} tries (last: {gate} {code})"
            for node, rule, gate, code, times in hopeless)
        # First another target; when that did not help either, back to earlier nodes, if any.
        back = self._redirects > 0 and len(lineage) > 1
        return Redirect(reason, BACKTRACK if back else CHANGE_TARGET, count, self._summary(),
                        exhausted, dry, hopeless)

    def escalate(self, lineage: Lineage, *, exhausted: bool = False) -> tuple[int, ...] | None:
        """The nodes from which to start over, when redirects did not help or nothing is left."""
        if self.level >= self.thresholds.levels:
            return None
        if exhausted:
            # What was just started over, and gave nothing new to judge, will not the next time.
            if self.level > 1 and not self._judged_at_level:
                return None
        elif self._redirects < self.thresholds.redirects or not self._reason()[0]:
            return None
        order = Diverse().order(lineage)
        return tuple(node.number for node in order[:self.thresholds.starts])

    def _reason(self) -> tuple[str, int]:
        limits = self.thresholds
        faults = sum(self._faults)
        if faults >= limits.faults:
            return FAULTS, faults
        repeats = sum(self._proposals)
        if len(self._proposals) >= limits.window and repeats >= limits.repeats * limits.window:
            return REPEATS, repeats
        if self._since_redirect >= limits.no_progress:
            return NO_PROGRESS, self.since_commit
        return "", 0

    def _exhausted(
        self, memory: Memory
    ) -> tuple[tuple[tuple[int, str], ...], tuple[str, ...]]:
        dry, sentences = [], []
        for (node, direction), line in sorted(self._directions.items()):
            if line.judged >= self.thresholds.hypothesis and not line.gained:
                if not memory.dry(node, Direction(direction)):
                    dry.append((node, direction))
                sentences.append(f"{direction} on node {node} is exhausted: {line.judged} "
                                 f"candidates, none faster than it")
        return tuple(dry), tuple(sentences)

    def _summary(self) -> tuple[str, ...]:
        sentences: list[str] = []
        for (node, direction), line in sorted(self._directions.items()):
            best = f", the fastest {line.best:.4f}x" if line.passed else ""
            failed: Sequence[tuple[tuple[str, str], int]] = line.failed.most_common(1)
            most = f"; most failed at {failed[0][0][0]} ({failed[0][0][1]})" if failed else ""
            sentences.append(f"{direction} on node {node}: {line.judged} candidates, {line.passed} "
                             f"passed{best}{most}")
        return tuple(sentences)
