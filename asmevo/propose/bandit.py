"""How promising a proposer is, judging by what it has gained and what that took."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from asmevo.propose.proposal import Experience, Feedback

# What judging takes in seconds, typically (a candidate that the emulator times, and one that a gate
# stops before). Decisions that rest on the clock of the machine could not be repeated.
_TIMED, _STOPPED = 1.0, 0.3
# Before anything is known: half a commit of half a per cent in five seconds. Low enough that one
# which has shown something is preferred, and vague enough that the others get their chance. Of what
# always asking the best would gain, three made-up proposers (250 trios, whose commits become rarer
# at different paces) reach 0.89 in 100 s and 0.94 in 1,200 s with this; asked in turns, 0.64 and
# 0.74; with one per cent for one commit in ten seconds, 0.78 and 0.91.
_COMMITS, _SECONDS, _GAIN = 0.5, 5.0, 0.005


@dataclass(frozen=True, slots=True)
class Pace:
    """What is known of one proposer: its commits, their gain, and the seconds it took.

    ``dry`` are the seconds since its last commit. What came before fades by half every
    ``half_life`` of them: the easy gains are usually the first, and a proposer that has had its
    day should not live on them.
    """

    commits: float = 0.0
    gain: float = 0.0
    seconds: float = 0.0
    dry: float = 0.0

    @staticmethod
    def of(experience: Experience, *, overhead: float, measured: bool) -> Pace:
        """``overhead`` are the seconds that making one proposal takes."""
        proposed, passed = experience.proposed, experience.passed
        judging = passed * _TIMED + (proposed - passed) * _STOPPED
        seconds = (experience.seconds if measured else judging) + proposed * overhead
        dry = seconds * min(experience.dry, proposed) / proposed if proposed else 0.0
        return Pace(experience.accepted, experience.gain, seconds, dry)

    def after(self, feedback: Feedback, gain: float, *, overhead: float, measured: bool) -> Pace:
        """With one more judged proposal, which gained ``gain`` (0: nothing) on the best."""
        judging = _TIMED if feedback.speedup is not None else _STOPPED
        seconds = (feedback.seconds if measured else judging) + overhead
        won = gain > 0
        return Pace(self.commits + won, self.gain + gain, self.seconds + seconds,
                    0.0 if won else self.dry + seconds)

    def draw(self, chance: random.Random, half_life: float) -> float:
        """A gain per second that is plausible given all this (Thompson sampling).

        Commits are taken for a Poisson process, whose rate has a gamma distribution.
        """
        kept = math.exp2(-self.dry / half_life)
        shape = _COMMITS + kept * self.commits
        seconds = _SECONDS + kept * (self.seconds - self.dry) + self.dry
        gain = (_COMMITS * _GAIN + self.gain) / (_COMMITS + self.commits)
        return chance.gammavariate(shape, 1.0 / seconds) * gain
