"""What the run remembers, within bounds."""

from __future__ import annotations

from collections import deque

from asmevo.propose.proposal import Direction, Failure
from asmevo.search.attempt import Attempt


class Memory:
    """Fingerprints already judged, recent failures, and which directions ran dry on which node."""

    def __init__(self, failures: int = 64) -> None:
        self._seen: set[str] = set()
        self._failures: deque[Failure] = deque(maxlen=failures)
        self._dry: set[tuple[int, Direction]] = set()

    @property
    def seen(self) -> frozenset[str]:
        return frozenset(self._seen)

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(self._failures)

    def known(self, attempt: Attempt) -> bool:
        """Whether this candidate was judged before (another worker may have been first)."""
        return attempt.fingerprint in self._seen

    def remember(self, attempt: Attempt) -> None:
        self._seen.add(attempt.fingerprint)
        for verdict in attempt.verdicts:
            if not verdict.passed:
                self._failures.append(
                    Failure(
                        rule=attempt.proposal.rule, edits=attempt.proposal.edits,
                        gate=verdict.gate.value, code=verdict.code, reason=verdict.reason,
                    )
                )

    def mark_dry(self, node: int, directions: tuple[Direction, ...]) -> None:
        self._dry.update((node, d) for d in directions or tuple(Direction))

    def dry(self, node: int, direction: Direction) -> bool:
        return (node, direction) in self._dry
