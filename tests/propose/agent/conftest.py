"""The agent against a scripted Messages API, with a key that opens nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from asmevo.propose.agent.proposer import AnthropicProposer
from asmevo.propose.proposal import Evidence, Feedback, Proposal, Spending
from tests.propose.agent.messages_api import Act, MessagesApi
from tests.propose.conftest import Kernels

PRICES = {"scripted": {"input": 5.0, "output": 25.0, "cache_write": 6.25, "cache_read": 0.5}}
KEY = "sk-test-opens-nothing"

# v1 and v2 are computed for nothing; the loop runs on s0.
KERNEL_TEXT = """
v_mov_b32_e32 v1, 0
v_add_f32_e32 v2, v1, v1
v_mov_b32_e32 v3, 1.0
loop:
v_add_f32_e32 v3, v3, v0
s_add_u32 s0, s0, -1
s_cmp_eq_u32 s0, 0
s_cbranch_scc1 loop
global_store_dword v0, v3, s[2:3]
s_endpgm
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK finds this key and nothing else that this machine may hold."""
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE",
                 "ANTHROPIC_CONFIG_DIR", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_IDENTITY_TOKEN",
                 "ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_FEDERATION_RULE_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


@pytest.fixture
def api(httpserver: HTTPServer) -> Callable[..., MessagesApi]:
    return lambda *acts, **more: MessagesApi(httpserver, list(acts), **more)


@pytest.fixture
def evidence(kernels: Kernels) -> Evidence:
    return kernels.evidence(KERNEL_TEXT)


Judge = Callable[[Proposal], Feedback | None]


def rejected(proposal: Proposal) -> Feedback:
    if proposal.refusal:
        return Feedback(proposal, "G0", "edit-refused", proposal.refusal)
    return Feedback(proposal, "G2", "bits", "dispatch 'a', region 'out': bits at element 3")


class Agent:
    """Runs a proposer against a script and collects what it proposes."""

    def __init__(self, make: Callable[..., MessagesApi], folder: Path) -> None:
        self._make = make
        self.transcript = folder / "transcript.jsonl"
        self.proposer: AnthropicProposer | None = None
        self.server: MessagesApi | None = None

    def configured(self, server: MessagesApi, **settings: Any) -> AnthropicProposer:
        defaults: dict[str, Any] = {
            "model": "scripted", "prices": PRICES, "base_url": server.url, "timeout": 5.0,
            "max_retries": 2, "transcript": str(self.transcript)}
        return AnthropicProposer(**{**defaults, **settings})

    def run(
        self, evidence: Evidence, *acts: Act, judge: Judge = rejected, repeat: bool = False,
        **settings: Any,
    ) -> list[Proposal]:
        self.server = self._make(*acts, repeat=repeat)
        self.proposer = self.configured(self.server, **settings)
        return collect(self.proposer, evidence, judge)

    @property
    def spent(self) -> Spending:
        assert self.proposer is not None
        return self.proposer.spent

    @property
    def requests(self) -> list[dict[str, Any]]:
        assert self.server is not None
        return self.server.requests


def collect(
    proposer: AnthropicProposer, evidence: Evidence, judge: Judge = rejected, most: int = 1000
) -> list[Proposal]:
    found: list[Proposal] = []
    proposals = proposer.propose(evidence)
    feedback: Feedback | None = None
    while len(found) < most:
        try:
            found.append(proposals.send(feedback))
        except StopIteration:
            break
        feedback = judge(found[-1])
    proposals.close()
    return found


@pytest.fixture
def agent(
    api: Callable[..., MessagesApi], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Agent:
    monkeypatch.setattr("asmevo.propose.agent.client._LONGEST_PAUSE", 0.0)
    return Agent(api, tmp_path)


def last_results(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool results in the last message of a request."""
    return [b for b in request["messages"][-1]["content"] if b["type"] == "tool_result"]


def result_text(block: dict[str, Any]) -> str:
    (part,) = block["content"]
    return str(part["text"])
