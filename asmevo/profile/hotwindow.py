"""Stall-dominated instruction windows: the places worth editing."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.profile.profile import StallCause


@dataclass(frozen=True, slots=True)
class HotWindow:
    """Instructions ``start`` to ``stop`` (exclusive) and their share of all stalled cycles.

    ``reads``/``writes`` are register masks: what the window needs from before it, and what it
    changes. ``cause`` is the dominating stall.
    """

    start: int
    stop: int
    share: float
    cause: StallCause
    reads: int
    writes: int
