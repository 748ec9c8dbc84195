"""Stall-dominated instruction windows: the places worth editing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from asmevo.isa.dependence import Edge
from asmevo.isa.hazards import Requirement
from asmevo.profile.profile import StallCause


@dataclass(frozen=True, slots=True)
class Wait:
    """An ``s_waitcnt`` and the memory operations it may wait for, some maybe outside the window."""

    index: int
    operations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HotWindow:
    """Instructions ``start`` to ``stop`` (exclusive) and their share of all stalled cycles.

    ``cause`` is the dominating stall, ``stalled`` the window's stalled cycles over all profiles,
    ``causes`` the same by cause, and ``recoverable`` those of them that a perfect schedule within
    the block could hide (:mod:`asmevo.profile.recoverable`).

    ``reads``/``writes`` are register masks: what the window needs from before it, and what it
    changes. ``live_in`` is what it needs where lanes that are off keep their registers,
    ``live_out`` what it changes and later code reads, ``live_through`` what lives across it
    untouched; ``pressure`` the most VGPRs and AGPRs live at once inside.

    ``edges`` keep their order within the window; ``waits`` and ``hazards`` constrain it besides.
    It sits in ``loop_depth`` loops, the innermost of which makes ``trip_count`` rounds (``None``:
    not in a loop, or the profile does not tell), and is executed ``executions`` times.
    """

    start: int
    stop: int
    share: float
    cause: StallCause
    reads: int
    writes: int
    recoverable: int = 0
    stalled: int = 0
    causes: dict[StallCause, int] = field(default_factory=dict)
    live_in: int = 0
    live_out: int = 0
    live_through: int = 0
    pressure: int = 0
    edges: tuple[Edge, ...] = ()
    waits: tuple[Wait, ...] = ()
    hazards: tuple[Requirement, ...] = ()
    loop_depth: int = 0
    trip_count: float | None = None
    executions: int = 0

    @property
    def recoverable_share(self) -> float:
        """Recoverable cycles as a share of all stalled cycles of the program."""
        return self.share * self.recoverable / self.stalled if self.stalled else 0.0


def total_share(windows: Iterable[HotWindow]) -> float:
    """The share of all stalled cycles that lies in some windows; they do not overlap."""
    return sum(window.share for window in windows)
