"""One question to the Messages API: streamed, retried within bounds, and every failure typed."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from asmevo.propose.agent.ledger import Usage
from asmevo.propose.agent.untrusted import line
from asmevo.propose.errors import ProposerError

if TYPE_CHECKING:
    import anthropic

log = logging.getLogger(__name__)

_LONGEST_PAUSE = 8.0
_NO_KEY = "proposer=anthropic needs a key: set ANTHROPIC_API_KEY in the environment"


class Failure(StrEnum):
    """Why there was no answer."""

    RATE_LIMITED = "rate limited"
    OVERLOADED = "overloaded"
    SERVER = "server error"
    TIMEOUT = "timeout"
    CONNECTION = "no connection"
    # The stream ended early or was no Messages stream.
    BROKEN = "broken answer"
    # The request itself: key, permission, model, parameters.
    REJECTED = "request rejected"


_TEMPORARY = frozenset(Failure) - {Failure.REJECTED}
_BY_TYPE = {
    "rate_limit_error": Failure.RATE_LIMITED, "overloaded_error": Failure.OVERLOADED,
    "api_error": Failure.SERVER, "timeout_error": Failure.TIMEOUT,
}


class NoAnswerError(Exception):
    """The API gave no answer, retries included."""

    def __init__(self, failure: Failure, reason: str) -> None:
        super().__init__(f"{failure.value}: {line(reason)}")
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's turn: its blocks as they are to be sent back, why it stopped, and its usage."""

    content: tuple[dict[str, Any], ...]
    stop_reason: str
    usage: Usage
    request_id: str | None = None
    explanation: str = ""


class Client:
    """The SDK's client, made when it is first needed.

    The SDK finds the key, and retries what fails before an answer begins (connection, 408, 409,
    429, 5xx) ``max_retries`` times with its own pauses. An answer that breaks off is asked for
    again at most ``stream_retries`` times.
    """

    def __init__(
        self, *, base_url: str | None, timeout: float, max_retries: int, stream_retries: int,
        pause: float = 1.0,
    ) -> None:
        self._base_url, self._timeout = base_url, timeout
        self._max_retries, self._stream_retries = max_retries, stream_retries
        self._pause = pause
        self._sdk: anthropic.Anthropic | None = None
        self._answered = False

    def ask(self, request: Mapping[str, Any], lost: list[Usage]) -> Answer:
        """The answer to a request of ``messages.stream``.

        The usage of answers that broke off is appended to ``lost``. Raises `NoAnswerError`, and
        `ProposerError` when there is no key or package, or when the very first request is rejected:
        then the configuration is wrong.
        """
        sdk = self.connect()
        for attempt in range(self._stream_retries + 1):
            try:
                answer = self._streamed(sdk, request, lost)
            except NoAnswerError as error:
                if error.failure is Failure.REJECTED and not self._answered:
                    raise ProposerError(f"the Messages API refuses: {error}") from error
                if error.failure is not Failure.BROKEN or attempt == self._stream_retries:
                    raise
                log.info("asking again: %s", error)
                time.sleep(min(_LONGEST_PAUSE, self._pause * 2**attempt))
            else:
                self._answered = True
                return answer
        raise AssertionError("the last attempt returns or raises")

    def connect(self) -> anthropic.Anthropic:
        """The SDK's client, with a key. Nothing is sent yet.

        Raises `ProposerError` when there is no key or package.
        """
        if self._sdk is None:
            try:
                # Takes a second to import and is an optional extra.
                import anthropic
            except ImportError as error:
                raise ProposerError(
                    "proposer=anthropic needs the 'anthropic' package: "
                    "pip install 'asmevo[anthropic]'") from error
            try:
                sdk = anthropic.Anthropic(
                    base_url=self._base_url, timeout=self._timeout,
                    max_retries=self._max_retries)
            except anthropic.AnthropicError as error:
                raise ProposerError(f"{_NO_KEY} ({line(str(error))})") from error
            if sdk.api_key is None and sdk.auth_token is None and sdk.credentials is None:
                raise ProposerError(_NO_KEY)
            self._sdk = sdk
        return self._sdk

    def _streamed(
        self, sdk: anthropic.Anthropic, request: Mapping[str, Any], lost: list[Usage]
    ) -> Answer:
        import anthropic
        import httpx2

        stream: anthropic.MessageStream[None] | None = None
        try:
            with sdk.messages.stream(**request) as stream:
                message = stream.get_final_message()
                request_id = stream.request_id
            if message.stop_reason is None:
                raise NoAnswerError(Failure.BROKEN, "the stream ended before the answer did")
        except (anthropic.APIError, httpx2.HTTPError, NoAnswerError, ValueError, RuntimeError,
                AssertionError, IndexError, AttributeError, TypeError) as error:
            # The last ones are what the SDK lets through for a stream that is none: JSON that does
            # not parse, events out of order, fields of another type.
            if stream is not None and (begun := _begun(stream)) is not None:
                lost.append(begun)
            raise _typed(error, begun=stream is not None) from error
        details = message.stop_details
        return Answer(
            tuple(filter(None, map(_block, message.content))), message.stop_reason, message.usage,
            request_id, "" if details is None else line(details.explanation or details.category
                                                        or ""))


def _begun(stream: anthropic.MessageStream[None]) -> Usage | None:
    """What an answer that broke off had used; its input has been paid for."""
    try:
        return stream.current_message_snapshot.usage
    except AssertionError:
        return None


def _typed(error: Exception, *, begun: bool) -> NoAnswerError:
    import anthropic
    import httpx2

    if isinstance(error, NoAnswerError):
        return error
    if isinstance(error, anthropic.APITimeoutError | httpx2.TimeoutException):
        return NoAnswerError(Failure.BROKEN if begun else Failure.TIMEOUT, str(error) or "timeout")
    if isinstance(error, anthropic.APIStatusError):
        failure = _BY_TYPE.get(error.type or "")
        if failure is None:
            status = error.status_code
            failure = (Failure.RATE_LIMITED if status == 429 else Failure.OVERLOADED
                       if status == 529 else Failure.SERVER if status >= 500 else
                       Failure.BROKEN if status < 400 else Failure.REJECTED)
        # An error within a stream: the SDK does not try again what has begun.
        if begun and failure in _TEMPORARY:
            failure = Failure.BROKEN
        return NoAnswerError(failure, error.api_message or error.message)
    if isinstance(error, anthropic.APIConnectionError | httpx2.HTTPError):
        return NoAnswerError(Failure.BROKEN if begun else Failure.CONNECTION, str(error))
    if not begun and isinstance(error, TypeError):
        raise error  # the SDK's complaint about the call itself is a defect of ours
    return NoAnswerError(Failure.BROKEN, f"{type(error).__name__}: {error}")


def _block(block: Any) -> dict[str, Any] | None:
    """A block as the API takes it back; ``None`` for one that has no place in a request."""
    if block.type == "text":
        return {"type": "text", "text": block.text} if block.text else None
    if block.type == "thinking":
        return {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
    if block.type == "redacted_thinking":
        return {"type": "redacted_thinking", "data": block.data}
    if block.type == "tool_use":
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    return None
