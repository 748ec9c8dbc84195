"""What answers cost, checked by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from asmevo.__main__ import config_folder
from asmevo.propose.agent.ledger import Prices
from asmevo.propose.mixed import MixedProposer
from asmevo.propose.proposal import Evidence, Feedback, Spender
from tests.propose.agent.conftest import Agent
from tests.propose.agent.messages_api import MessagesApi, Turn, submit, text, tool

DONE = Turn([text("nothing promising is left")], input_tokens=1000, output_tokens=100)


def test_every_kind_of_token_has_its_price(agent: Agent, evidence: Evidence) -> None:
    """Prices of the script: 5 input, 25 output, 6.25 cache write, 0.5 cache read per million."""
    first = Turn([tool("overview")], input_tokens=2000, output_tokens=400, cache_write=8000)
    second = Turn([submit((0, 2, []))], input_tokens=100, output_tokens=1000, cache_read=8000,
                  cache_write=2400)
    assert len(agent.run(evidence, first, second, DONE, DONE)) == 1
    answers = 2000 + 400 + 8000 + 100 + 1000 + 8000 + 2400
    assert agent.spent.tokens == answers + 2 * 1100
    assert agent.spent.cost == pytest.approx(
        (2100 * 5 + 1400 * 25 + 10400 * 6.25 + 8000 * 0.5 + 2 * (1000 * 5 + 100 * 25)) / 1e6)


def test_the_controller_sees_what_each_proposal_cost(
        agent: Agent, evidence: Evidence, api: Callable[..., MessagesApi]) -> None:
    turn = Turn([submit((0, 2, []))], input_tokens=1000, output_tokens=0)
    proposer = agent.configured(api(Turn([tool("overview")]), turn, turn, DONE, DONE))
    assert isinstance(proposer, Spender)
    assert isinstance(MixedProposer({"anthropic": proposer}), Spender)
    proposals = proposer.propose(evidence)
    seen = [proposer.spent.tokens]
    proposal = next(proposals)
    seen.append(proposer.spent.tokens)
    proposals.send(Feedback(proposal, duplicate=True))
    seen.append(proposer.spent.tokens)
    assert list(proposals) == []
    seen.append(proposer.spent.tokens)
    assert seen == [0, 1110, 2110, 2110 + 2200]
    # The next call goes on counting.
    assert MixedProposer({"anthropic": proposer}).spent == proposer.spent


def test_a_dated_model_costs_what_its_name_does() -> None:
    table: dict[str, dict[str, Any]] = {
        "claude-x": {"input": 1, "output": 2, "cache_write": 3, "cache_read": 4}}
    assert Prices.of("claude-x-20260101", table) == Prices(1.0, 2.0, 3.0, 4.0)


def test_the_table_follows_the_published_ratios() -> None:
    """A 5-minute cache write costs 1.25 of the input, a read at most a tenth of it."""
    settings: Any = OmegaConf.to_container(
        OmegaConf.load(Path(config_folder()) / "proposer" / "anthropic.yaml"))
    assert settings["model"] == "claude-opus-4-8"
    assert settings["prices"][settings["model"]] == {
        "input": 5.0, "output": 25.0, "cache_write": 6.25, "cache_read": 0.5}
    for model in settings["prices"]:
        prices = Prices.of(model, settings["prices"])
        assert prices.output == 5 * prices.input, model
        assert prices.cache_write == 1.25 * prices.input, model
        assert prices.cache_read <= 0.1 * prices.input + 1e-9, model
