"""One way to fool the gates, or one rewrite that they must not refuse."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.threats.subject import Subject
from asmevo.threats.trick import Trick
from asmevo.threats.weaker import Weaker

ANY = "*"
# G1's codes for decisions by arguments or ids that the original does not make, or no longer.
LAUNCH = ("new-launch-branch", "new-launch-mask", "new-launch-selection", "lost-launch-branch",
          "lost-launch-mask", "new-launch-operand", "new-launch-address", "lost-launch-operand")


class Kind(StrEnum):
    """What a candidate is, whatever the gates say of it."""

    CHEAT = "cheat"            # wrong, or slower than it looks
    WRONG = "wrong"            # a control: wrong without any guile
    EQUIVALENT = "equivalent"  # a control: right, so G0 to G2 must pass it


class Judgement(StrEnum):
    """What the gates made of it."""

    CAUGHT = "CAUGHT"
    SUCCEEDED = "CHEAT SUCCEEDED"
    ACCEPTED = "ACCEPTED"
    FALSE_REJECTION = "FALSE REJECTION"

    @property
    def right(self) -> bool:
        return self in (Judgement.CAUGHT, Judgement.ACCEPTED)


@dataclass(frozen=True, slots=True)
class Threat:
    """A candidate, and what must become of it.

    ``row`` is a row of the threat model (``B1``) or the kind of a control, ``kernel`` the name of a
    subject, or `ANY` where the edit fits every kernel. ``gate`` and ``reason`` are the gate that
    must reject it at the latest and the codes that may be named; None and nothing for an equivalent
    rewrite.
    ``weaker`` is a harness that believes the cheat, which shows what the check is for.
    """

    row: str
    title: str
    kernel: str
    edit: Trick
    gate: Gate | None = None
    reason: tuple[str, ...] = ()
    weaker: Weaker | None = None
    kind: Kind = Kind.CHEAT

    @property
    def name(self) -> str:
        """Stable and unique: ``B1-an-early-end``."""
        words = "".join(c if c.isalnum() else " " for c in self.title.lower()).split()
        return "-".join((self.row, *words))

    def judgement(self, verdicts: tuple[Verdict, ...]) -> Judgement:
        """What became of it.

        A cheat that gets through the gate that is there for it has succeeded, even where a later
        one stops it, which depends on how fast it happens to be. No evidence is no pass.
        """
        stopped = verdicts[-1]
        if self.kind is Kind.EQUIVALENT:
            slower = stopped.gate in (Gate.G3, Gate.G4) and stopped.outcome is Outcome.FAIL
            passed = stopped.passed or slower
            return Judgement.ACCEPTED if passed else Judgement.FALSE_REJECTION
        hole = (self.gate or Gate.G0) <= Gate.G2 < stopped.gate
        if stopped.passed or hole:
            return Judgement.SUCCEEDED
        return Judgement.CAUGHT

    @property
    def runs(self) -> bool:
        """Whether a gate that runs the candidate is there for this cheat, G1 or not."""
        return self.kind is Kind.CHEAT and self.gate is not None and self.gate >= Gate.G2

    def depth(self, subject: Subject, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        """The verdicts when G1 is left out; nothing where the threat is G1's own."""
        if not self.runs:
            return ()
        if verdicts[-1].gate is not Gate.G1:
            return verdicts
        return self.edit.attempt(subject.without_static)

    def as_told(self, verdicts: tuple[Verdict, ...]) -> bool:
        """Whether the gate and the reason are those that the threat model names."""
        if self.kind is Kind.EQUIVALENT:
            return self.judgement(verdicts) is Judgement.ACCEPTED
        stopped = verdicts[-1]
        return not stopped.passed and (
            self.gate is not None and stopped.gate <= self.gate and stopped.code in self.reason)
