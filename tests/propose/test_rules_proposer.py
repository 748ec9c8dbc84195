"""The proposer: order, determinism, memory, configuration."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from asmevo.isa.hazards import hazards
from asmevo.isa.waits import missing_waits
from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Direction, Evidence, Failure, Proposal
from asmevo.propose.rule import RuleContext
from asmevo.propose.rules.dead_code import DeadCode
from asmevo.propose.rules.identity_moves import IdentityMoves
from asmevo.propose.rules.relax_waits import RelaxWaits
from asmevo.propose.rules_proposer import RulesProposer

CONFIG = Path(__file__).parents[2] / "conf" / "proposer" / "rules.yaml"


def _proposer(**overrides: Any) -> RulesProposer:
    config = OmegaConf.load(CONFIG)
    proposer = instantiate(config, **overrides)
    assert isinstance(proposer, RulesProposer)
    return proposer


def _some(evidence: Evidence, count: int = 20, **overrides: Any) -> list[Proposal]:
    return list(islice(_proposer(**overrides).propose(evidence), count))


def test_deterministic_and_free_of_repeats(layer_norm_evidence: Evidence) -> None:
    first = _some(layer_norm_evidence)
    assert first == _some(layer_norm_evidence)
    keys = [tuple((e.start, e.stop, e.lines) for e in p.edits) for p in first]
    assert len(set(keys)) == len(keys)
    assert all(keys)


def test_what_was_asked_before_changes_no_answer(layer_norm_evidence: Evidence) -> None:
    proposer = _proposer()
    fresh = _some(layer_norm_evidence, 24)
    assert list(islice(proposer.propose(layer_norm_evidence), 9)) == fresh[:9]
    # Other hot windows, another order; then the first ones again, and in another process.
    other = replace(layer_norm_evidence, windows=layer_norm_evidence.windows[:1])
    assert list(islice(proposer.propose(other), 24)) == _some(other, 24)
    assert list(islice(proposer.propose(layer_norm_evidence), 24)) == fresh
    sent = pickle.loads(pickle.dumps(proposer))
    assert list(islice(sent.propose(layer_norm_evidence), 9)) == fresh[:9]


def test_the_seed_changes_only_the_turns(layer_norm_evidence: Evidence) -> None:
    rules = [DeadCode(), IdentityMoves(), RelaxWaits(spans=(0,))]
    one, two = (list(RulesProposer(rules, seed=seed).propose(layer_norm_evidence))
                for seed in (1, 2))
    assert {p.edits for p in one} == {p.edits for p in two}
    together = next(k for k, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
    assert all("+" not in p.rule for p in one[together:])


def test_whole_kernel_proposals_then_combinations(layer_norm_evidence: Evidence) -> None:
    rules = [p.rule for p in _some(layer_norm_evidence, 14)]
    first = next(k for k, rule in enumerate(rules) if "+" in rule)
    assert len(set(rules[:first])) == first
    assert first >= 8
    assert rules[first].startswith("dead-code+")


def test_combinations_are_clean_and_relative_to_the_base(layer_norm_evidence: Evidence) -> None:
    context = RuleContext(layer_norm_evidence)
    known = {v.signature for v in (*missing_waits(context.program), *hazards(context.program))}
    combined = [p for p in _some(layer_norm_evidence, 24) if "+" in p.rule]
    assert len(combined) > 5
    for proposal in combined:
        after = context.preview.apply(proposal.edits).program
        found = {v.signature for v in (*missing_waits(after), *hazards(after))}
        assert found <= known, proposal.rule


def test_failures_are_not_proposed_again(layer_norm_evidence: Evidence) -> None:
    first = _some(layer_norm_evidence, 3)
    failed = tuple(Failure(p.rule, p.edits, "G2", "unequal", "") for p in first)
    again = _some(replace(layer_norm_evidence, failures=failed), 12)
    assert not {p.edits for p in first} & {p.edits for p in again}


def test_a_refuted_assumption_stays_out_of_combinations(layer_norm_evidence: Evidence) -> None:
    failed = (Failure("dead-code", (), "G2", "unequal", ""),)
    for proposal in _some(replace(layer_norm_evidence, failures=failed), 16):
        if "+" in proposal.rule:
            assert "LDS" not in proposal.assumption


def test_directions_filter_and_limit(layer_norm_evidence: Evidence) -> None:
    found = _some(layer_norm_evidence, directions=["latency-hiding"], limit=5)
    assert len(found) == 5
    assert {str(p.direction) for p in found} == {"latency-hiding"}


def test_evidence_asks_for_directions(layer_norm_evidence: Evidence) -> None:
    wanted = (Direction.SIMPLIFICATION,)
    found = _some(replace(layer_norm_evidence, directions=wanted), 12)
    assert {p.direction for p in found} == set(wanted)
    assert any("+" in p.rule for p in found)
    nothing = replace(layer_norm_evidence, directions=(Direction.REGISTER_PRESSURE,))
    assert _some(nothing) == []


def test_hot_windows_come_first(layer_norm_evidence: Evidence) -> None:
    hot = layer_norm_evidence.windows[0]
    _, *individual = RelaxWaits(spans=()).matches(RuleContext(layer_norm_evidence))
    assert any(hot.start <= e.start < hot.stop for e in individual[0].edits)


def test_counts_per_rule(layer_norm_evidence: Evidence) -> None:
    proposer = RulesProposer([IdentityMoves()])
    assert len(list(proposer.propose(layer_norm_evidence))) == proposer.proposed["identity-moves"]


@pytest.mark.parametrize(("overrides", "message"), [
    ({"directions": ["speed"]}, "'speed' is no direction"),
    ({"rules": [DeadCode(), DeadCode()]}, "listed twice"),
    ({"limit": 0}, "leaves none"),
])
def test_senseless_configuration(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ProposerError, match=message):
        RulesProposer(**{"rules": [DeadCode()], **overrides})


def test_a_kernel_with_nothing_to_do(kernels: Any) -> None:
    assert _some(kernels.evidence("s_endpgm")) == []
