"""What a proposer sees, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from asmevo.codeobject.assembly import Edit
from asmevo.isa.program import Program
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import Profile


class Direction(StrEnum):
    """The orthogonal lines of attack that a planner hands to workers."""

    LATENCY_HIDING = "latency-hiding"
    DEPENDENCY_CHAINS = "dependency-chains"
    REGISTER_PRESSURE = "register-pressure"
    MEMORY_ACCESS = "memory-access"
    SIMPLIFICATION = "simplification"


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits to one base, all meant to be applied together, and why they should help.

    ``rule`` names the transformation; ``rationale`` is one or two sentences for the lineage.
    ``assumption`` is what it takes for granted without a proof (rounding may change, two buffers
    do not overlap), empty when the proposer's own analysis supports every edit.
    """

    edits: tuple[Edit, ...]
    rule: str
    direction: Direction
    rationale: str
    assumption: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A rejected proposal, as far as a proposer may know it."""

    rule: str
    edits: tuple[Edit, ...]
    gate: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a proposer is shown about the base it should improve.

    ``lines[i]`` is the editable text (symbolic branch targets) of ``program.instructions[i]``.
    ``speedup`` is the base's verified speedup over the original. ``directions`` are those the
    planner asks for, all when empty. Held-out dispatches, gates and the registry are not reachable
    from here.
    """

    kernel: str
    program: Program
    lines: tuple[str, ...]
    windows: tuple[HotWindow, ...]
    profiles: tuple[Profile, ...]
    speedup: float
    failures: tuple[Failure, ...] = ()
    directions: tuple[Direction, ...] = ()


class Proposer(Protocol):
    """Suggests local edits; decides nothing."""

    def propose(self, evidence: Evidence) -> Iterator[Proposal]:
        """Yield proposals, most promising first. Deterministic for the same evidence and seed."""
        ...
