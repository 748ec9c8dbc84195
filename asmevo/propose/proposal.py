"""What a proposer sees, and what it answers."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

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
    do not overlap), empty when the proposer's own analysis supports every edit. ``proposer`` is who
    made it, for bookkeeping.

    ``refusal`` says why the proposer itself found that its edits are none (a language model gave
    something malformed): it is refused at G0, and counts as an attempt.
    """

    edits: tuple[Edit, ...]
    rule: str
    direction: Direction
    rationale: str
    assumption: str = ""
    proposer: str = ""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What became of a proposal, as far as a proposer may know it.

    ``gate``, ``code`` and ``reason`` are those of the first gate that it did not pass, empty when
    it passed G0 to G3. ``speedup`` is over the original on the timed dispatches, which are visible;
    ``None`` when it was not timed. ``seconds`` is what judging it took.
    """

    proposal: Proposal
    gate: str = ""
    code: str = ""
    reason: str = ""
    speedup: float | None = None
    seconds: float = 0.0
    duplicate: bool = False

    @property
    def passed(self) -> bool:
        return not self.gate and self.speedup is not None


@dataclass(frozen=True, slots=True)
class Experience:
    """What one proposer or rule has done in this run so far.

    ``gain`` is the sum of the natural logarithms by which its commits beat the best before them,
    ``dry`` how many of its proposals came after its last commit.
    """

    proposed: int = 0
    passed: int = 0
    accepted: int = 0
    gain: float = 0.0
    seconds: float = 0.0
    dry: int = 0


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
    ``base`` is the SHA-256 of the base's object, ``original`` that of the original's, and
    ``speedup`` the base's verified speedup over it. ``directions`` are those the planner asks for,
    all when empty. ``seed`` differs between assignments; everything random comes from it.
    ``experience`` is by name of proposer, ``rules`` by name of rule; ``insights`` are sentences on
    what has helped and which lines of attack are exhausted. Held-out dispatches, gates and the
    registry are not reachable from here.
    """

    kernel: str
    program: Program
    lines: tuple[str, ...]
    windows: tuple[HotWindow, ...]
    profiles: tuple[Profile, ...]
    speedup: float
    failures: tuple[Failure, ...] = ()
    directions: tuple[Direction, ...] = ()
    seed: int = 0
    experience: Mapping[str, Experience] = field(default_factory=dict)
    rules: Mapping[str, Experience] = field(default_factory=dict)
    insights: tuple[str, ...] = ()
    base: str = ""
    original: str = ""


Proposals = Generator[Proposal, Feedback | None, None]
"""Each ``yield`` of a proposal returns what became of it."""


@runtime_checkable
class Prepares(Protocol):
    """A proposer that needs something for a run: a key, a file to read, a place to write to."""

    def prepare(self, folder: Path) -> None:
        """Get ready before the first call of `propose`; ``folder`` is the run folder.

        Raises `ProposerError` for what would otherwise only be found out in the middle of a run.
        """
        ...


@runtime_checkable
class Proposer(Protocol):
    """Suggests local edits; decides nothing."""

    def propose(self, evidence: Evidence) -> Proposals:
        """Yield proposals, most promising first. Deterministic for the same evidence and feedback;
        what should outlast one call must come back in the next call's evidence.
        """
        ...


@dataclass(frozen=True, slots=True)
class Spending:
    """What proposing has cost: tokens of a language model, and US dollars."""

    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: Spending) -> Spending:
        return Spending(self.tokens - other.tokens, self.cost - other.cost)


NOTHING_SPENT = Spending()


@runtime_checkable
class Spender(Protocol):
    """A proposer that costs money. ``spent`` only ever grows.

    It is looked at before a proposal is asked for and after it came, and when a call of `propose`
    ends: the difference counts against the search's budget, which the controller owns.
    """

    @property
    def spent(self) -> Spending: ...
