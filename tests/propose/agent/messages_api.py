"""A server that speaks the Messages API, as far as the SDK's streaming needs it, from a script."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

Block = dict[str, Any]
_numbers = itertools.count()


def text(content: str) -> Block:
    return {"type": "text", "text": content}


def tool(name: str, **given: Any) -> Block:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": given}


def submit(*edits: tuple[int, int, list[str]], **more: Any) -> Block:
    fields = {"rationale": "nothing reads it", "direction": "simplification", **more}
    return tool("submit_edits", edits=[
        {"start": start, "stop": stop, "lines": lines} for start, stop, lines in edits], **fields)


@dataclass(frozen=True)
class Turn:
    """An answer: blocks, why it stopped, and what it counts."""

    blocks: Sequence[Block]
    stop: str | None = None
    input_tokens: int = 100
    output_tokens: int = 10
    cache_write: int = 0
    cache_read: int = 0
    explanation: str | None = None

    def events(self) -> Iterator[dict[str, Any]]:
        usage = {
            "input_tokens": self.input_tokens, "output_tokens": 1,
            "cache_creation_input_tokens": self.cache_write,
            "cache_read_input_tokens": self.cache_read}
        yield {"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}}
        for index, block in enumerate(self.blocks):
            yield {"type": "content_block_start", "index": index, "content_block": _begun(block)}
            for delta in _deltas(block):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        uses = any(block["type"] == "tool_use" for block in self.blocks)
        stop = self.stop or ("tool_use" if uses else "end_turn")
        details = None
        if stop == "refusal":
            details = {"type": "refusal", "category": None, "explanation": self.explanation}
        yield {"type": "message_delta",
               "delta": {"stop_reason": stop, "stop_sequence": None, "stop_details": details},
               "usage": {"output_tokens": self.output_tokens}}
        yield {"type": "message_stop"}

    def body(self) -> str:
        return "".join(sse(event) for event in self.events())


def sse(event: dict[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _begun(block: Block) -> Block:
    if block["type"] == "tool_use":
        return {**block, "input": {}}
    if block["type"] == "thinking":
        return {**block, "thinking": "", "signature": ""}
    return {**block, "text": ""}


def _deltas(block: Block) -> Iterator[dict[str, Any]]:
    if block["type"] == "tool_use":
        raw = block.get("raw") or json.dumps(block["input"])
        # In pieces, as the API sends them.
        for at in range(0, len(raw), 37):
            yield {"type": "input_json_delta", "partial_json": raw[at:at + 37]}
    elif block["type"] == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        yield {"type": "text_delta", "text": block["text"]}


Act = Turn | Callable[[], Response]


def failure(status: int, kind: str, message: str = "scripted", **headers: str) -> Act:
    """An error response; the SDK is told to try again at once."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}})
    # werkzeug sends one response once: each act makes its own.
    return lambda: Response(body, status, {"retry-after-ms": "1", **headers},
                            content_type="application/json")


def stream_of(body: str) -> Act:
    """A stream of this text, whatever it is."""
    return lambda: Response(body, content_type="text/event-stream")


def slow(seconds: float) -> Act:
    def act() -> Response:
        time.sleep(seconds)
        return Response("", 500)

    return act


@dataclass
class MessagesApi:
    """Plays ``acts`` one per request; the last one again and again when ``repeat``."""

    server: HTTPServer
    acts: list[Act]
    repeat: bool = False
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # A path of its own: a request that another test gave up on must not be played to.
        self._root = f"/{next(_numbers)}"
        self.server.expect_request(f"{self._root}/v1/messages", method="POST").respond_with_handler(
            self._play)

    @property
    def url(self) -> str:
        return self.server.url_for(self._root)

    def _play(self, request: Request) -> Response:
        self.requests.append(json.loads(request.get_data()))
        self.headers.append({k.lower(): v for k, v in request.headers.items()})
        if not self.acts:
            return Response('{"type": "error", "error": {"type": "invalid_request_error",'
                            '"message": "the script is over"}}', 400)
        act = self.acts[0] if self.repeat and len(self.acts) == 1 else self.acts.pop(0)
        if isinstance(act, Turn):
            return Response(act.body(), content_type="text/event-stream",
                            headers={"request-id": "req_1"})
        return act()
