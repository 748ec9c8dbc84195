"""What goes wrong between here and a model ends the agent's turn, never the search."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Evidence
from tests.propose.agent.conftest import Agent, collect
from tests.propose.agent.messages_api import (
    Act,
    MessagesApi,
    Turn,
    failure,
    slow,
    sse,
    stream_of,
    submit,
    text,
    tool,
)

DONE = Turn([text("nothing promising is left")])
GOOD = Turn([submit((0, 2, []))])
OVERLOADED = failure(529, "overloaded_error", "Overloaded")


def begun(turn: Turn, events: int, *more: dict[str, Any]) -> Act:
    """The first events of an answer, and then others."""
    return stream_of("".join(map(sse, [*list(turn.events())[:events], *more])))


@pytest.mark.parametrize("act", [
    OVERLOADED, failure(429, "rate_limit_error"), failure(500, "api_error"),
    failure(503, "api_error"), failure(408, "timeout_error"),
])
def test_the_sdk_tries_again(agent: Agent, evidence: Evidence, act: Act) -> None:
    assert len(agent.run(evidence, act, act, GOOD, DONE, DONE)) == 1
    assert len(agent.requests) == 5


@pytest.mark.parametrize(("act", "words"), [
    (OVERLOADED, "overloaded: Overloaded"),
    (failure(429, "rate_limit_error", "too many tokens a minute"), "rate limited: too many tokens"),
    (failure(500, "api_error", "our fault"), "server error: our fault"),
])
def test_tries_are_bounded(
        agent: Agent, evidence: Evidence, act: Act, words: str,
        caplog: pytest.LogCaptureFixture) -> None:
    assert agent.run(evidence, act, repeat=True, max_retries=2) == []
    assert len(agent.requests) == 3
    (record,) = [r for r in caplog.records if r.name.startswith("asmevo")
                 and r.levelno >= logging.WARNING]
    assert words in record.getMessage()
    assert record.exc_info is None


def test_what_was_spent_before_counts(agent: Agent, evidence: Evidence) -> None:
    agent.run(evidence, GOOD, Turn([tool("overview")]), *[OVERLOADED] * 3, max_retries=2)
    assert agent.spent.tokens == 220


def test_a_server_that_does_not_answer(
        agent: Agent, evidence: Evidence, caplog: pytest.LogCaptureFixture) -> None:
    assert agent.run(evidence, slow(1.0), repeat=True, timeout=0.2, max_retries=1) == []
    assert "timeout: Request timed out" in caplog.text


def test_nobody_listens(
        agent: Agent, evidence: Evidence, api: Callable[..., MessagesApi],
        caplog: pytest.LogCaptureFixture) -> None:
    proposer = agent.configured(api(), base_url="http://127.0.0.1:9", max_retries=0)
    assert collect(proposer, evidence) == []
    assert "no connection" in caplog.text


OVERLOAD_EVENT = {
    "type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
BROKEN: list[tuple[str, Act, int]] = [
    ("error event", begun(GOOD, 4, OVERLOAD_EVENT), 101),
    ("stream ends", begun(GOOD, 5), 101),
    ("nothing but a ping", stream_of("event: ping\ndata: {}\n\n"), 0),
    ("empty", stream_of(""), 0),
    ("no JSON", stream_of("event: message_start\ndata: {oops\n\n"), 0),
    ("out of order", begun(Turn([]), 0, {"type": "content_block_stop", "index": 3}), 0),
    ("wrong index", begun(GOOD, 1, {"type": "content_block_stop", "index": 3}), 101),
    ("arguments are no JSON", Turn([{**submit(), "raw": '{"edits": ]]'}]), 101),
]


@pytest.mark.parametrize(("act", "lost"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_an_answer_that_breaks_off_is_asked_for_again(
        agent: Agent, evidence: Evidence, act: Act, lost: int) -> None:
    assert len(agent.run(evidence, act, GOOD, DONE, DONE)) == 1
    # What had begun is paid for.
    assert agent.spent.tokens == lost + 3 * 110


def test_a_stall_in_the_middle_is_asked_for_again_within_bounds(
        agent: Agent, evidence: Evidence, caplog: pytest.LogCaptureFixture) -> None:
    assert agent.run(
        evidence, begun(GOOD, 4, OVERLOAD_EVENT), repeat=True, stream_retries=2) == []
    assert len(agent.requests) == 3
    assert agent.spent.tokens == 3 * 101
    assert "broken answer: " in caplog.text


def test_a_refusal_ends_the_turn(
        agent: Agent, evidence: Evidence, caplog: pytest.LogCaptureFixture) -> None:
    refusing = Turn([text("I will")], stop="refusal", explanation="against the\x07 policy")
    assert agent.run(evidence, refusing) == []
    assert "the model refused to go on: against the\N{REPLACEMENT CHARACTER} policy" in caplog.text


@pytest.mark.parametrize(("act", "words"), [
    (failure(401, "authentication_error", "invalid x-api-key"), "invalid x-api-key"),
    (failure(404, "not_found_error", "model: claude-typo"), "model: claude-typo"),
    (failure(400, "invalid_request_error", "effort is not supported"), "effort is not supported"),
    (failure(403, "permission_error", "not for you"), "not for you"),
])
def test_a_wrong_configuration_is_one_sentence(
        agent: Agent, evidence: Evidence, act: Act, words: str) -> None:
    with pytest.raises(ProposerError, match="refuses: request rejected: " + words):
        agent.run(evidence, act, repeat=True)
    assert len(agent.requests) == 1


def test_a_rejection_later_on_only_ends_the_turn(
        agent: Agent, evidence: Evidence, caplog: pytest.LogCaptureFixture) -> None:
    proposals = agent.run(evidence, GOOD, failure(400, "invalid_request_error", "no credit"))
    assert [len(p.edits) for p in proposals] == [1]
    assert "request rejected: no credit" in caplog.text


def test_no_key_is_one_sentence(
        agent: Agent, evidence: Evidence, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    # No profile of whoever runs the tests, either.
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path / "none"))
    with pytest.raises(ProposerError, match="set ANTHROPIC_API_KEY"):
        agent.run(evidence, GOOD)
    assert agent.requests == []


def test_no_package_is_one_sentence(
        agent: Agent, evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ProposerError, match=r"pip install 'asmevo\[anthropic\]'"):
        agent.run(evidence, GOOD)


@pytest.mark.parametrize(("settings", "words"), [
    ({"max_tokens": 0}, "more than 0"), ({"timeout": 0}, "more than 0"),
    ({"max_retries": -1}, "negative"), ({"effort": "heroic"}, "effort"),
    ({"thinking": "enabled"}, "thinking"),
    ({"model": "unheard-of"}, r"what the model 'unheard-of' costs is not known; give "
                              r"'\+proposer\.prices\.unheard-of="),
    ({"prices": {"scripted": {"input": 1.0}}}, "must give input, output, cache_write, cache_read"),
    ({"prices": {"scripted": {"input": -1.0, "output": 1.0, "cache_write": 1.0,
                              "cache_read": 1.0}}}, "must give"),
])
def test_settings_that_make_no_sense(
        agent: Agent, api: Callable[..., MessagesApi], settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ProposerError, match=words):
        agent.configured(api(), **settings)
