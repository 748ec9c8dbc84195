"""The messages of one assignment, where they are cached, and how they are kept short."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

_CACHED = {"type": "ephemeral"}

SUMMARISE = (
    "This conversation is about to exceed its bound and will be replaced by what you write now. "
    "Summarise for yourself, in at most 600 words: what limits this kernel and how you know, which "
    "instructions and registers matter (with indices), what you submitted and what became of it, "
    "what you consider refuted, and what you would try next. Do not use a tool."
)


def cached(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copies of blocks (or tools), with a cache breakpoint on the last."""
    out = [dict(block) for block in blocks]
    if out:
        out[-1]["cache_control"] = _CACHED
    return out


class Conversation:
    """Messages in turn, beginning with ``brief``, and what of them has been written down.

    Two cache breakpoints move along: on the last message of the user, which the next request reads
    back, and on the one before, which this request reads. With those of the tools and the system
    prompt that makes the four that the API allows.
    """

    def __init__(self, brief: str) -> None:
        self._brief = brief
        self.messages: list[dict[str, Any]] = []
        self._noted = 0
        self.say(brief)

    def say(self, text: str) -> None:
        self._user([{"type": "text", "text": text}])

    def answered(self, content: Sequence[dict[str, Any]]) -> None:
        # An answer may be empty, but not in the request after it.
        blocks = list(content) or [{"type": "text", "text": "(nothing)"}]
        self.messages.append({"role": "assistant", "content": blocks})

    def results(self, blocks: Sequence[dict[str, Any]]) -> None:
        """Results of every tool that the last answer used."""
        self._user(list(blocks))

    def request(self) -> list[dict[str, Any]]:
        """The messages with their cache breakpoints."""
        out = copy.deepcopy(self.messages)
        users = [message for message in out if message["role"] == "user"]
        for message in users[-2:]:
            message["content"][-1]["cache_control"] = _CACHED
        return out

    def restart(self, summary: str) -> None:
        """Replace everything by the brief and a summary."""
        self.messages = []
        self._noted = 0
        self.say(f"{self._brief}\n\nYour own notes of the conversation so far:\n{summary}")

    def unnoted(self) -> list[dict[str, Any]]:
        """Messages that no transcript has yet."""
        out = self.messages[self._noted:]
        self._noted = len(self.messages)
        return out

    def _user(self, blocks: list[dict[str, Any]]) -> None:
        # Turns alternate: what comes after results of tools belongs to the same message.
        if self.messages and self.messages[-1]["role"] == "user":
            self.messages[-1]["content"] += blocks
            self._noted = min(self._noted, len(self.messages) - 1)
        else:
            self.messages.append({"role": "user", "content": blocks})
