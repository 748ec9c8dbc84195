"""The bandit over proposers, against proposers whose worth is known."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.propose.bandit import Pace
from asmevo.propose.errors import ProposerError
from asmevo.propose.mixed import MixedProposer
from asmevo.propose.proposal import (
    Direction,
    Evidence,
    Experience,
    Feedback,
    Proposal,
    Proposals,
)
from tests.propose.conftest import KERNEL, Kernels


@dataclass
class Fake:
    """Makes ``count`` numbered proposals and remembers what it heard."""

    label: str
    count: int = 10**6
    heard: list[Feedback | None] = field(default_factory=list)
    closed: bool = False
    folder: Path | None = None
    direction: Direction = Direction.SIMPLIFICATION

    def prepare(self, folder: Path) -> None:
        self.folder = folder

    def propose(self, evidence: Evidence) -> Proposals:
        try:
            for number in range(self.count):
                edit = Edit(KERNEL, 0, 1, (f"s_nop {number}",), self.label)
                self.heard.append((yield Proposal(
                    (edit,), self.label, self.direction, "")))
        finally:
            self.closed = True


@pytest.fixture
def evidence(kernels: Kernels) -> Evidence:
    return kernels.evidence("s_nop 1\ns_endpgm")


Judge = Callable[[Proposal, int], Feedback | None]


def played(
    proposer: MixedProposer, evidence: Evidence, judge: Judge, rounds: int
) -> list[Proposal]:
    """``judge`` sees each proposal and how many that proposer has made before."""
    made: Counter[str] = Counter()
    out: list[Proposal] = []
    proposals = proposer.propose(evidence)
    feedback: Feedback | None = None
    for _ in range(rounds):
        try:
            proposal = proposals.send(feedback)
        except StopIteration:
            break
        out.append(proposal)
        feedback = judge(proposal, made[proposal.proposer])
        made[proposal.proposer] += 1
    proposals.close()
    return out


class Worth:
    """Judges: of each proposer's proposals a share beats the best by one per cent."""

    def __init__(self, shares: Mapping[str, float], until: Mapping[str, int] | None = None) -> None:
        self.chance = random.Random(7)
        self.shares, self.until, self.best = shares, until or {}, 1.0

    def __call__(self, proposal: Proposal, made: int) -> Feedback:
        name = proposal.proposer
        if made < self.until.get(name, 10**9) and self.chance.random() < self.shares[name]:
            self.best *= 1.01
            return Feedback(proposal, speedup=self.best)
        return Feedback(proposal, "G2", "wrong", "differs")


def refused(proposal: Proposal, made: int) -> Feedback:
    return Feedback(proposal, "G1", "no", "no")


def shares(proposals: list[Proposal]) -> Counter[str]:
    return Counter(p.proposer for p in proposals)


def test_each_is_heard_before_the_bandit_decides(evidence: Evidence) -> None:
    mixed = MixedProposer({"a": Fake("a"), "b": Fake("b"), "c": Fake("c")}, first=3)
    assert [p.proposer for p in played(mixed, evidence, refused, 9)] == list("aaabbbccc")


def test_what_an_earlier_call_heard_counts(evidence: Evidence) -> None:
    evidence = replace(evidence, experience={"a": Experience(proposed=2), "b": Experience(9)})
    mixed = MixedProposer({"a": Fake("a"), "b": Fake("b")}, first=3)
    assert next(mixed.propose(evidence)).proposer == "a"
    known = replace(evidence, experience={
        "a": Experience(100, 20, 0, 0.0, 50.0, dry=100),
        "b": Experience(100, 20, 10, 0.3, 50.0, dry=3)})
    counts = shares(played(mixed, known, refused, 20))
    assert counts["b"] > counts["a"]


@pytest.mark.parametrize("seed", range(5))
def test_the_better_one_gets_most(evidence: Evidence, seed: int) -> None:
    mixed = MixedProposer({"poor": Fake("poor"), "good": Fake("good")})
    counts = shares(played(
        mixed, replace(evidence, seed=seed), Worth({"poor": 0.002, "good": 0.08}), 300))
    assert counts["good"] > 200
    assert counts["poor"] >= 4


@pytest.mark.parametrize("seed", range(5))
def test_old_gains_fade(evidence: Evidence, seed: int) -> None:
    """One shines for 60 proposals and then finds nothing; the other goes on slowly."""
    mixed = MixedProposer({"early": Fake("early"), "steady": Fake("steady")})
    worth = Worth({"early": 0.3, "steady": 0.05}, until={"early": 60})
    proposals = played(mixed, replace(evidence, seed=seed), worth, 900)
    assert shares(proposals[:60])["early"] > 30
    assert shares(proposals[600:])["steady"] > 200


def test_time_counts_not_proposals(evidence: Evidence) -> None:
    """Equally good per proposal, but one takes 20 seconds to make one."""
    mixed = MixedProposer({"slow": Fake("slow"), "fast": Fake("fast")}, overhead={"slow": 20.0})
    counts = shares(played(mixed, evidence, Worth({"slow": 0.1, "fast": 0.1}), 300))
    assert counts["fast"] > 5 * counts["slow"]


def test_measured_time(evidence: Evidence) -> None:
    def judge(proposal: Proposal, made: int) -> Feedback:
        seconds = 30.0 if proposal.proposer == "slow" else 0.1
        return Feedback(proposal, "G2", "wrong", "", seconds=seconds)

    proposers = {"slow": Fake("slow"), "fast": Fake("fast")}
    measured = shares(played(MixedProposer(proposers, clock="measured"), evidence, judge, 200))
    nominal = shares(played(MixedProposer(proposers), evidence, judge, 200))
    assert measured["slow"] < nominal["slow"]


def test_the_same_seed_gives_the_same_choices(evidence: Evidence) -> None:
    def names(seed: int, seconds: float = 0.0) -> list[str]:
        worth = Worth({"a": 0.1, "b": 0.1})

        def judge(proposal: Proposal, made: int) -> Feedback:
            return replace(worth(proposal, made), seconds=seconds)

        mixed = MixedProposer({"a": Fake("a"), "b": Fake("b")})
        return [p.proposer for p in played(mixed, replace(evidence, seed=seed), judge, 80)]

    assert names(1) == names(1, seconds=9.0)
    assert names(1) != names(2)


def test_feedback_reaches_the_one_that_proposed(evidence: Evidence) -> None:
    fakes = {"a": Fake("a"), "b": Fake("b")}
    played(MixedProposer(fakes, first=2), evidence, Worth({"a": 0.5, "b": 0.5}), 40)
    for name, fake in fakes.items():
        assert len(fake.heard) > 1
        for number, feedback in enumerate(fake.heard):
            assert feedback is not None
            assert feedback.proposal.rule == name
            assert feedback.proposal.edits[0].lines == (f"s_nop {number}",)
            assert feedback.proposal.proposer == ""  # its own proposal, as it made it


def test_the_exhausted_drop_out(evidence: Evidence) -> None:
    mixed = MixedProposer({"short": Fake("short", 2), "long": Fake("long", 30)})
    counts = shares(played(mixed, evidence, refused, 1000))
    assert counts == {"short": 2, "long": 30}


def test_one_that_only_repeats_itself_drops_out(evidence: Evidence) -> None:
    def judge(proposal: Proposal, made: int) -> Feedback | None:
        if proposal.proposer == "other":
            return Feedback(proposal, "G1", "no", "no")
        return None if made % 2 else Feedback(proposal, duplicate=True)

    stuck = Fake("stuck")
    mixed = MixedProposer({"stuck": stuck, "other": Fake("other", 100)}, patience=10)
    assert shares(played(mixed, evidence, judge, 1000)) == {"stuck": 10, "other": 100}
    assert stuck.closed


def test_one_of_another_direction_drops_out(evidence: Evidence) -> None:
    wanted = replace(evidence, directions=(Direction.MEMORY_ACCESS,))
    simple = Fake("simple")
    mixed = MixedProposer({"simple": simple, "memory": Fake(
        "memory", 20, direction=Direction.MEMORY_ACCESS)})
    assert shares(played(mixed, wanted, refused, 100)) == {"memory": 20}
    assert len(simple.heard) == 8
    assert simple.closed


def test_all_are_closed_when_the_search_has_enough(evidence: Evidence) -> None:
    fakes = {"a": Fake("a"), "b": Fake("b")}
    played(MixedProposer(fakes, first=1), evidence, refused, 3)
    assert all(fake.closed for fake in fakes.values())


def test_all_are_prepared(tmp_path: Path) -> None:
    fake = Fake("a")
    MixedProposer({"a": fake}).prepare(tmp_path)
    assert fake.folder == tmp_path


def test_a_plausible_gain_is_an_honest_guess() -> None:
    """The mean of what is drawn is the posterior's."""
    chance = random.Random(1)
    pace = Pace(commits=10, gain=0.2, seconds=100.0)
    draws = [pace.draw(chance, 60.0) for _ in range(4000)]
    assert math.fsum(draws) / len(draws) == pytest.approx(
        (10.5 / 105) * (0.2025 / 10.5), rel=0.05)


@dataclass(frozen=True)
class Waning:
    """A proposer whose share of commits falls from ``early`` to ``late``."""

    early: float
    pace: float
    late: float
    gain: float

    def share(self, made: int) -> float:
        return self.late + (self.early - self.late) * math.exp(-made / self.pace)


def waning(chance: random.Random) -> Waning:
    def between(low: float, high: float) -> float:
        return math.exp(chance.uniform(math.log(low), math.log(high)))

    early = between(0.005, 0.4)
    return Waning(early, between(8, 600), early * between(0.005, 0.3), between(0.002, 0.02))


def gained(choose: Callable[[list[int], list[Pace], random.Random], int],
           trio: list[Waning], seed: int) -> float:
    """What 400 seconds bring."""
    chance = random.Random(seed)
    made, paces = [0, 0, 0], [Pace(), Pace(), Pace()]
    seconds = total = 0.0
    while seconds < 400:
        at = choose(made, paces, chance)
        won = chance.random() < trio[at].share(made[at])
        gain = chance.expovariate(1 / trio[at].gain) if won else 0.0
        timed = won or chance.random() < 0.5
        proposal = Proposal((), "", Direction.SIMPLIFICATION, "")
        paces[at] = paces[at].after(
            Feedback(proposal, speedup=1.0 if timed else None), gain, overhead=0.0, measured=False)
        made[at] += 1
        seconds += 1.0 if timed else 0.3
        total += gain
    return total


def test_it_comes_near_to_always_asking_the_best() -> None:
    chance = random.Random(5)
    trios = [[waning(chance) for _ in range(3)] for _ in range(40)]
    best = bandit = turns = 0.0
    for seed, trio in enumerate(trios):
        best += gained(lambda made, paces, _, trio=trio: max(  # type: ignore[misc]
            range(3), key=lambda i: trio[i].share(made[i]) * trio[i].gain), trio, seed)
        bandit += gained(lambda made, paces, chance: max(
            range(3), key=lambda i: paces[i].draw(chance, 60.0)), trio, seed)
        turns += gained(lambda made, paces, _: sum(made) % 3, trio, seed)
    assert bandit > 0.85 * best
    assert turns < 0.8 * best


WRONG: list[tuple[dict[str, object], str]] = [
    ({"proposers": {}}, "at least one"),
    ({"proposers": {"a": None}}, "at least one"),
    ({"proposers": {"a": 3}}, r"proposers\.a is no proposer"),
    ({"proposers": {"a": Fake("a")}, "clock": "sundial"}, "not 'sundial'"),
    ({"proposers": {"a": Fake("a")}, "half_life": 0}, "half_life"),
    ({"proposers": {"a": Fake("a")}, "overhead": {"a": -1.0}}, "overhead must not be negative"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_settings_that_make_no_sense(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ProposerError, match=words):
        MixedProposer(**arguments)  # type: ignore[arg-type]
