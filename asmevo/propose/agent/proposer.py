"""A language model that reads a kernel through tools and submits edits."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from asmevo.propose.agent.assignment import Assignment, Bounds
from asmevo.propose.agent.client import Client
from asmevo.propose.agent.conversation import cached
from asmevo.propose.agent.ledger import Ledger, Prices
from asmevo.propose.agent.tools import TOOLS
from asmevo.propose.agent.transcript import Transcript
from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Evidence, Proposals, Spending

log = logging.getLogger(__name__)

_EFFORTS = (None, "low", "medium", "high", "xhigh", "max")


class AnthropicProposer:
    """A long-horizon agent on the Messages API.

    Each call is a conversation about one base: the model reads the evidence through tools and
    submits edits, each of which becomes a `Proposal` and comes back to it with its verdict, until
    it has no more to say or a bound is reached. The key is the SDK's (``ANTHROPIC_API_KEY``).
    The kernel's assembly is sent to the API, or wherever ``base_url`` points.

    ``context_tokens`` bounds a conversation: above it, a summary replaces it. ``requests`` bounds
    the requests of a call, ``patience`` those in a row without a proposal that is judged.
    ``prices`` are USD for a million tokens by model; a model without any is refused. ``thinking``
    and ``effort`` are passed on, ``null`` leaves them to the model. ``transcript`` is a file that
    everything said is appended to, by default ``transcript.jsonl`` in the run folder.

    Raises `ProposerError` for settings that make no sense.
    """

    def __init__(
        self,
        model: str,
        prices: Mapping[str, Mapping[str, float]],
        base_url: str | None = None,
        max_tokens: int = 32_000,
        thinking: str | None = "adaptive",
        effort: str | None = "high",
        timeout: float = 120.0,
        max_retries: int = 4,
        stream_retries: int = 2,
        context_tokens: int = 120_000,
        requests: int = 400,
        patience: int = 24,
        transcript: str | None = None,
    ) -> None:
        if min(max_tokens, context_tokens, requests, patience) < 1 or not timeout > 0:
            raise ProposerError("proposer.max_tokens, context_tokens, requests, patience and "
                                "timeout must be more than 0")
        if max_retries < 0 or stream_retries < 0:
            raise ProposerError("proposer.max_retries and stream_retries must not be negative")
        if thinking not in (None, "adaptive") or effort not in _EFFORTS:
            raise ProposerError("proposer.thinking is adaptive or null, proposer.effort one of "
                                + ", ".join(e for e in _EFFORTS if e) + " or null")
        self._ledger = Ledger(Prices.of(model, prices))
        self._bounds = Bounds(context_tokens, requests, patience)
        self._client = Client(base_url=base_url, timeout=timeout, max_retries=max_retries,
                              stream_retries=stream_retries)
        self._transcript = Transcript(Path(transcript).expanduser() if transcript else None)
        text = (resources.files("asmevo.propose.agent") / "system.md").read_text(encoding="utf-8")
        self._request: dict[str, Any] = {
            "model": model, "max_tokens": max_tokens, "tools": cached(TOOLS),
            "system": cached([{"type": "text", "text": text}]),
        }
        if thinking is not None:
            self._request["thinking"] = {"type": thinking}
        if effort is not None:
            self._request["output_config"] = {"effort": effort}
        self._prompt = hashlib.sha256(text.encode()).hexdigest()

    def prepare(self, folder: Path) -> None:
        """Find the package and the key; keep the transcript in the run folder unless the
        configuration names another place.
        """
        self._client.connect()
        if self._transcript.path is None:
            self._transcript.path = folder / "transcript.jsonl"

    @property
    def spent(self) -> Spending:
        """Tokens and USD of all calls so far."""
        return self._ledger.total

    def propose(self, evidence: Evidence) -> Proposals:
        """Yield what the model submits. Ends with a warning when the API gives no answer."""
        before = self.spent
        self._transcript.call += 1
        self._transcript.add(
            "begin", base=evidence.base, model=self._request["model"],
            directions=[d.value for d in evidence.directions], system_sha256=self._prompt,
            system=self._request["system"], tools=[tool["name"] for tool in TOOLS])
        try:
            yield from Assignment(
                evidence, self._client, self._request, self._ledger, self._transcript,
                self._bounds,
            ).run()
        finally:
            spent = self.spent - before
            self._transcript.add("end", tokens=spent.tokens, cost=spent.cost)
            log.info("the model's %d tokens cost %.4f USD", spent.tokens, spent.cost)
