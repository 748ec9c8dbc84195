"""What the run remembers, within bounds."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from asmevo.codeobject.assembly import Edit
from asmevo.propose.proposal import Direction, Failure
from asmevo.search.attempt import Block

EVERYWHERE = "*"
# Edits that span more instructions have no place of their own.
_LOCAL = 96
_BUCKET = 32


def region(edits: Sequence[Edit]) -> str:
    """Where edits are, roughly: the same for neighbours, empty for edits all over the kernel."""
    if not edits:
        return ""
    start = min(edit.start for edit in edits)
    stop = max(edit.stop for edit in edits)
    return "" if stop - start > _LOCAL else f"{start // _BUCKET}-{stop // _BUCKET}"


@dataclass
class _Kind:
    """What became of one rule's candidates in one region of one base."""

    passed: int = 0
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)


class Memory:
    """Fingerprints already judged, recent failures, kinds that always fail, directions that ran dry
    on a node, and insights.

    ``failures`` and ``insights`` are the most that are kept; ``signature`` is how often one rule
    has to fail with the same code in the same region of a base, and never pass there, until its
    kind is not judged any more.
    """

    def __init__(self, failures: int = 64, insights: int = 24, signature: int = 6) -> None:
        self._seen: set[str] = set()
        self._failures: deque[Failure] = deque(maxlen=failures)
        self._helped: deque[str] = deque(maxlen=max(1, insights // 2))
        self._given_up: deque[str] = deque(maxlen=max(1, insights - insights // 2))
        self._dry: set[tuple[int, Direction]] = set()
        self._kinds: dict[tuple[int, str, str], _Kind] = {}
        self._signature = signature
        self._hopeless: dict[tuple[int, str], Block] = {}

    @property
    def seen(self) -> frozenset[str]:
        return frozenset(self._seen)

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(self._failures)

    @property
    def insights(self) -> tuple[str, ...]:
        """What helped, then what is exhausted, each oldest first."""
        return (*self._helped, *self._given_up)

    def known(self, fingerprint: str) -> bool:
        """Whether this candidate was judged before (another worker may have been first)."""
        return fingerprint in self._seen

    def saw(self, fingerprint: str) -> None:
        self._seen.add(fingerprint)

    def passed(self, base: int, rule: str, edits: Sequence[Edit]) -> None:
        """A candidate passed G0 to G3."""
        if where := region(edits):
            self._kinds.setdefault((base, rule, where), _Kind()).passed += 1

    def failed(self, base: int, failure: Failure) -> None:
        """A candidate did not pass."""
        self._failures.append(failure)
        if where := region(failure.edits):
            kind = self._kinds.setdefault((base, failure.rule, where), _Kind())
            kind.failed[failure.gate, failure.code] += 1

    def blocked(self, base: int) -> Mapping[tuple[str, str], Block]:
        """Kinds of proposal for ``base`` that are not judged any more, by rule and region."""
        found = {
            (rule, EVERYWHERE): block
            for (node, rule), block in self._hopeless.items() if node == base
        }
        for (node, rule, where), kind in self._kinds.items():
            if node != base or kind.passed:
                continue
            for (gate, code), count in kind.failed.items():
                if count >= self._signature:
                    found[rule, where] = Block(gate, code, count)
        return found

    def give_up_rule(self, base: int, rule: str, block: Block) -> None:
        """A rule that never passed on ``base`` is not tried there any more."""
        self._hopeless[base, rule] = block

    def note(self, sentence: str) -> None:
        """Remember what helped."""
        self._helped.append(sentence)

    def give_up(self, sentences: Iterable[str]) -> None:
        """Remember exhausted hypotheses."""
        for sentence in sentences:
            if sentence in self._given_up:
                self._given_up.remove(sentence)
            self._given_up.append(sentence)

    def mark_dry(self, node: int, directions: tuple[Direction, ...]) -> None:
        self._dry.update((node, d) for d in directions or tuple(Direction))

    def dry(self, node: int, direction: Direction) -> bool:
        return (node, direction) in self._dry

    def reopen(self) -> None:
        """Nothing is exhausted any more: it will be looked at with other eyes."""
        self._dry.clear()
        self._hopeless.clear()


def stopped_by(blocked: Mapping[tuple[str, str], Block], rule: str,
               edits: Sequence[Edit]) -> Block | None:
    """What a proposal is not judged for, if anything."""
    if not blocked:
        return None
    return blocked.get((rule, EVERYWHERE)) or blocked.get((rule, region(edits) or "-"))
