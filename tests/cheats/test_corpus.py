"""Every threat against the gates: the named gate, the named reason, and nothing else refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from asmevo.gates.verdict import Gate
from asmevo.threats.corpus import CORPUS, ROWS, cases
from asmevo.threats.subject import Subject
from asmevo.threats.threat import ANY, Judgement, Kind, Threat
from asmevo.threats.trick import Candidate, EditMismatch
from asmevo.threats.weaker import Weaker, believed

SUBJECTS = ("layer_norm", "topksoftmax", "gemm", "i8gemm", "fmoe", "scaled_sum", "strided_scale",
            "column_sum")
# What fits every kernel is tried on these two each time, on the others with the marker `corpus`.
SMALL = ("layer_norm", "scaled_sum")

# What the gates are known not to see yet: these tests fail when they do.
OPEN: frozenset[str] = frozenset()


def tried() -> Iterator[object]:
    for threat, subject in cases(SUBJECTS):
        marks: list[pytest.MarkDecorator] = []
        if threat.kernel == ANY and subject not in SMALL:
            marks.append(pytest.mark.corpus)
        if threat.name in OPEN:
            marks.append(pytest.mark.xfail(strict=True, reason="a known gap"))
        yield pytest.param(threat, subject, id=f"{threat.name}-{subject}", marks=marks)


@pytest.mark.parametrize(("threat", "name"), list(tried()))
def test_threat(subjects: Mapping[str, Subject], threat: Threat, name: str) -> None:
    try:
        verdicts = threat.edit.attempt(subjects[name])
    except EditMismatch:
        if threat.kernel == ANY:
            return
        raise
    assert threat.judgement(verdicts).right, (threat.judgement(verdicts), verdicts[-1])
    assert threat.as_told(verdicts), verdicts[-1]
    deeper = threat.depth(subjects[name], verdicts)
    assert not deeper or threat.judgement(deeper).right, (
        "with G1 left out", threat.judgement(deeper), deeper[-1])


@pytest.mark.parametrize(("threat", "name"), [
    pytest.param(threat, subject, id=threat.name)
    for threat, subject in cases(SMALL + SUBJECTS[1:3])
    if threat.weaker is not None and (threat.kernel != ANY or subject == "layer_norm")])
def test_a_harness_without_the_check_believes_it(
        subjects: Mapping[str, Subject], threat: Threat, name: str) -> None:
    """Otherwise the threat would not show what the check is for."""
    assert threat.weaker is not None
    assert isinstance(threat.edit, Candidate)
    belief = believed(threat.weaker, subjects[name], threat.edit.made(subjects[name]))
    assert belief is not None
    assert belief.accepted


@pytest.mark.parametrize("weaker", [w for w in Weaker if w is not Weaker.STATIC])
def test_a_weaker_harness_still_rejects_a_wrong_kernel(
        subjects: Mapping[str, Subject], weaker: Weaker) -> None:
    wrong = next(t for t in CORPUS if t.kind is Kind.WRONG and "difference" in t.title)
    assert isinstance(wrong.edit, Candidate)
    belief = believed(weaker, subjects["layer_norm"], wrong.edit.made(subjects["layer_norm"]))
    assert belief is not None
    assert not belief.accepted


def test_early_ends_look_fast_without_poison(subjects: Mapping[str, Subject]) -> None:
    jump = next(t for t in CORPUS if t.name == "B1-jump-from-the-entry-to-the-end")
    assert isinstance(jump.edit, Candidate)
    subject = subjects["layer_norm"]
    belief = believed(Weaker.POISON, subject, jump.edit.made(subject))
    assert belief is not None
    assert belief.accepted
    assert belief.speedup > 2


def test_every_row_has_threats_and_every_threat_a_row() -> None:
    assert {t.row for t in CORPUS} == {row.name for row in ROWS}
    assert {f"B{n}" for n in range(1, 23)} <= {row.name for row in ROWS}
    assert len({(t.name, t.kernel) for t in CORPUS}) == len(CORPUS)


def test_there_are_enough_controls() -> None:
    equivalent = [t for t in CORPUS if t.kind is Kind.EQUIVALENT]
    assert len(equivalent) >= 30
    assert len({t.kernel for t in equivalent}) >= 5
    assert sum(t.kind is Kind.WRONG for t in CORPUS) >= 10


def test_a_threat_names_a_gate_and_a_control_does_not() -> None:
    for threat in CORPUS:
        assert (threat.gate is None) == (threat.kind is Kind.EQUIVALENT), threat.name
        assert bool(threat.reason) == (threat.kind is not Kind.EQUIVALENT), threat.name


def test_depth(subjects: Mapping[str, Subject]) -> None:
    """G1's own threats have none, and a threat that G1 stopped is tried without it."""
    subject = subjects["layer_norm"]
    static = next(t for t in CORPUS if t.gate is Gate.G1 and t.kernel == "layer_norm")
    assert static.depth(subject, static.edit.attempt(subject)) == ()
    stale = next(t for t in CORPUS if t.name == "B6-the-old-output-is-added")
    verdicts = stale.edit.attempt(subject)
    assert verdicts[-1].gate is Gate.G1
    deeper = stale.depth(subject, verdicts)
    assert deeper[-1].gate is Gate.G2
    assert deeper[1].reason == "nothing was looked at"


def test_judgements(subjects: Mapping[str, Subject]) -> None:
    """The original itself: a success as a cheat, accepted as a rewrite."""
    subject = subjects["scaled_sum"]
    verdicts = subject.judge(subject.assembly)
    for kind, expected in ((Kind.CHEAT, Judgement.SUCCEEDED), (Kind.WRONG, Judgement.SUCCEEDED),
                           (Kind.EQUIVALENT, Judgement.ACCEPTED)):
        wrong = next(t for t in CORPUS if t.kind is kind and t.row in ("B2", "wrong", "equal"))
        assert wrong.judgement(verdicts) is expected
