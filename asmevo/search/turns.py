"""In which order the results of workers are taken: by counted work, never by the clock.

Each worker has a logical clock that a candidate advances by what judging one like it costs, as far
as the gates that it reached tell. Results are always taken from the worker that is furthest behind.
So the order is the same whatever the machine does meanwhile, and still close to the order in which
workers get done: nobody waits for a round to end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from asmevo.search.events import Attempted

# Relative costs on the emulator: building and static analysis are cheap, verification three times
# over is not, and timing comes on top of it.
_COST = {"G0": 1, "G1": 1, "G2": 4, "G3": 8, "G4": 8}
_FAULT = 8


@dataclass
class Turns:
    """Logical clocks by worker."""

    _clocks: dict[int, int] = field(default_factory=dict)
    _now: int = 0

    def first(self, workers: Collection[int]) -> int:
        """Whose result is taken next."""
        return min(workers, key=lambda worker: (self._clocks.get(worker, 0), worker))

    def joined(self, worker: int) -> None:
        """A worker that was idle has missed its turns."""
        self._clocks[worker] = max(self._clocks.get(worker, 0), self._now)

    def attempted(self, event: Attempted) -> None:
        gate = event.last.gate if event.last is not None else "G0"
        self._advance(event.worker, _COST.get(gate, 1))

    def fault(self, worker: int) -> None:
        self._advance(worker, _FAULT)

    def _advance(self, worker: int, cost: int) -> None:
        self._now = max(self._now, self._clocks.get(worker, 0))
        self._clocks[worker] = self._clocks.get(worker, 0) + cost
