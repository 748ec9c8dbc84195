"""What a search may spend."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from asmevo.errors import AsmEvoError


class BudgetError(AsmEvoError):
    """A budget makes no sense."""


@dataclass
class Budget:
    """Attempts and wall-clock seconds. The clock starts with `start`.

    Only ``attempts`` bounds a reproducible run: where ``seconds`` ends one, a slower machine gets
    less far.
    """

    attempts: int = 400
    seconds: float = 900.0
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    used: int = field(default=0, init=False)
    _started: float | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.attempts < 1 or not self.seconds > 0:
            raise BudgetError("search.budget needs at least one attempt and more than 0 seconds")

    def start(self) -> None:
        self._started = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return 0.0 if self._started is None else self.clock() - self._started

    @property
    def left(self) -> int:
        """Attempts left."""
        return max(0, self.attempts - self.used)

    def exhausted(self) -> str | None:
        """Which bound is reached, or ``None``."""
        if self.left == 0:
            return "attempts"
        if self.elapsed >= self.seconds:
            return "seconds"
        return None
