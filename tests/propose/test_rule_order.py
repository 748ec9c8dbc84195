"""Which rule is asked first, by what is expected of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from asmevo.profile.profile import InstructionProfile, Profile, StallCause
from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Evidence, Experience, Feedback, Proposal
from asmevo.propose.rule import RuleContext
from asmevo.propose.rule_order import RuleOrder
from asmevo.propose.rules.cache_hints import CacheHints
from asmevo.propose.rules.dead_code import DeadCode
from asmevo.propose.rules.identity_moves import IdentityMoves
from asmevo.propose.rules.relax_waits import RelaxWaits
from asmevo.propose.rules_proposer import RulesProposer

DEAD, MOVES, WAITS = DeadCode(), IdentityMoves(), RelaxWaits(spans=(0,))
ALL = (DEAD, MOVES, WAITS)


def ordered(order: RuleOrder) -> list[str]:
    return [rule.name for rule in sorted(ALL, key=order.rate, reverse=True)]


def stalled(evidence: Evidence, **cycles: int) -> Evidence:
    (first, *_) = evidence.windows
    causes = {StallCause[name]: count for name, count in cycles.items()}
    return replace(evidence, windows=(replace(first, causes=causes),))


def test_what_was_measured_elsewhere(layer_norm_evidence: Evidence) -> None:
    expected = {"dead-code": 0.001, "identity-moves": 0.02, "relax-waits": 0.01}
    order = RuleOrder(expected, replace(layer_norm_evidence, windows=()))
    assert ordered(order) == ["identity-moves", "relax-waits", "dead-code"]


def test_what_the_run_has_shown_counts_for_more(layer_norm_evidence: Evidence) -> None:
    expected = {"dead-code": 0.001, "identity-moves": 0.02, "relax-waits": 0.01}
    evidence = replace(layer_norm_evidence, windows=(), rules={
        "dead-code": Experience(4, 4, 1, 0.5), "identity-moves": Experience(60, 60, 0)})
    assert ordered(RuleOrder(expected, evidence)) == [
        "dead-code", "relax-waits", "identity-moves"]


@pytest.mark.parametrize(("cause", "first"), [
    ("VMCNT", "relax-waits"), ("DEPENDENCY", "dead-code"), ("FETCH", "dead-code"),
    ("BARRIER", "relax-waits")])
def test_what_stalls_decides_between_equals(
        layer_norm_evidence: Evidence, cause: str, first: str) -> None:
    evidence = stalled(layer_norm_evidence, **{cause: 900, "OCCUPANCY": 100})
    assert ordered(RuleOrder({}, evidence))[0] == first


def test_a_call_learns_from_what_it_proposed(layer_norm_evidence: Evidence) -> None:
    order = RuleOrder({}, replace(layer_norm_evidence, windows=(), speedup=1.0))
    proposal = Proposal((), "relax-waits", WAITS.direction, "")
    start = order.rate(WAITS)
    order.learn("relax-waits", Feedback(proposal, speedup=1.5))
    after = order.rate(WAITS)
    assert after > start
    # The same again is no gain any more, nor is what a gate stopped.
    order.learn("relax-waits", Feedback(proposal, speedup=1.5))
    order.learn("relax-waits", Feedback(proposal, gate="G1", code="x"))
    assert start < order.rate(WAITS) < after
    assert order.rate(DEAD) == start


def test_the_list_is_the_order_of_combinations_alone(layer_norm_evidence: Evidence) -> None:
    expected = {"relax-waits": 0.5, "identity-moves": 0.1, "dead-code": 0.01}
    evidence = replace(layer_norm_evidence, windows=())
    proposals = list(islice(RulesProposer(ALL, expected=expected).propose(evidence), 4))
    assert [p.rule for p in proposals][:3] == ["relax-waits", "identity-moves", "dead-code"]
    assert proposals[3].rule == "dead-code+identity-moves+relax-waits"


def test_an_expectation_of_no_rule() -> None:
    with pytest.raises(ProposerError, match="no rule is called 'relax-wait'"):
        RulesProposer(ALL, expected={"relax-wait": 1.0})


@pytest.mark.parametrize(("sources", "some"), [
    ((), True), (("modelled",), False), (("modelled", "static"), False),
    (("modelled", "measured"), True)])
def test_cache_hints_are_for_devices_that_measure(
        layer_norm_evidence: Evidence, sources: tuple[str, ...], some: bool) -> None:
    """A cycle model does not know them: each would be an attempt for nothing."""
    count = len(layer_norm_evidence.lines)
    profiles = tuple(Profile("d", source, "device", 1000, (InstructionProfile(1),) * count)
                     for source in sources)
    context = RuleContext(replace(layer_norm_evidence, profiles=profiles))
    assert bool(list(CacheHints().matches(context))) == some
    moved = next(DEAD.matches(context))
    assert bool(list(CacheHints().matches(context.after(moved.edits)))) == some
