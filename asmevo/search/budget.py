"""What a search may spend."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from asmevo.errors import AsmEvoError
from asmevo.propose.proposal import Spending


class BudgetError(AsmEvoError):
    """A budget makes no sense."""


@dataclass
class Budget:
    """Attempts and wall-clock seconds, and what a language model may cost: tokens and US dollars
    (``None``: as much as it takes). The clock starts with `start`.

    Only ``attempts`` bounds a reproducible run: where ``seconds`` ends one, a slower machine gets
    less far.
    """

    attempts: int = 400
    seconds: float = 900.0
    tokens: int | None = None
    cost: float | None = None
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    used: int = field(default=0, init=False)
    spent: Spending = field(default=Spending(), init=False)
    _earlier: float = field(default=0.0, init=False, repr=False)
    _started: float | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.attempts < 1 or not self.seconds > 0:
            raise BudgetError("search.budget needs at least one attempt and more than 0 seconds")
        if self.tokens is not None and self.tokens < 1:
            raise BudgetError(f"search.budget.tokens must be at least 1, not {self.tokens}")
        if self.cost is not None and not 0.0 < self.cost < math.inf:
            raise BudgetError(f"search.budget.cost must be above 0, not {self.cost}")

    def start(self, earlier: float = 0.0) -> None:
        """Start the clock; ``earlier`` seconds were used in sittings before."""
        self._earlier = earlier
        self._started = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the start, and those of sittings before."""
        return 0.0 if self._started is None else self._earlier + self.clock() - self._started

    @property
    def left(self) -> int:
        """Attempts left."""
        return max(0, self.attempts - self.used)

    @property
    def tokens_left(self) -> int | None:
        return None if self.tokens is None else max(0, self.tokens - self.spent.tokens)

    @property
    def cost_left(self) -> float | None:
        return None if self.cost is None else max(0.0, self.cost - self.spent.cost)

    def exhausted(self) -> str | None:
        """Which bound is reached, or ``None``."""
        if self.left == 0:
            return "attempts"
        if self.elapsed >= self.seconds:
            return "seconds"
        if self.tokens_left == 0:
            return "tokens"
        if self.cost_left == 0.0:
            return "cost"
        return None
