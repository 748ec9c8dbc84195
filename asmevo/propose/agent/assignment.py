"""One conversation with a model about one base."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from asmevo.errors import AsmEvoError
from asmevo.propose.agent.client import Answer, Client, NoAnswerError
from asmevo.propose.agent.conversation import SUMMARISE, Conversation
from asmevo.propose.agent.ledger import Ledger, Usage, context
from asmevo.propose.agent.submission import Malformed, Reader, Submission
from asmevo.propose.agent.tools import CHECK, SUBMIT
from asmevo.propose.agent.transcript import Transcript
from asmevo.propose.agent.untrusted import line, marked
from asmevo.propose.agent.view import View, ViewError
from asmevo.propose.proposal import Direction, Evidence, Feedback, Proposal, Proposals

log = logging.getLogger(__name__)

NAME = "anthropic"
_LONGEST_RESULT = 40_000  # characters
_REMEMBERED = 40
_MOST_CUT_OFF = 3
_NUDGE = ("Submit edits with submit_edits, or read more. If nothing promising is left, say so in "
          "one sentence and the assignment ends.")
_CUT_OFF = "not read: your answer was cut off at its token limit; keep it shorter"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Tokens of a conversation, requests of a call, and requests in a row without a judgement."""

    context_tokens: int
    requests: int
    patience: int


class Assignment:
    """Asks, answers tools, proposes, and reports verdicts, until something ends it."""

    def __init__(
        self, evidence: Evidence, client: Client, request: Mapping[str, Any], ledger: Ledger,
        transcript: Transcript, bounds: Bounds,
    ) -> None:
        self._evidence = evidence
        self._client, self._fixed = client, request
        self._ledger, self._transcript, self._bounds = ledger, transcript, bounds
        self._view = View(evidence)
        self._reader = Reader(self._view.context)
        self._conversation = Conversation(_brief(evidence))
        self._idle = 0
        self._nudged = False
        self._cut_off = 0
        self._outcomes: list[str] = []

    def run(self) -> Proposals:
        """Yield proposals; ends quietly, with a warning when the API is to blame."""
        for _ in range(self._bounds.requests):
            if self._idle >= self._bounds.patience:
                log.info("the model used %d requests without a proposal to judge", self._idle)
                break
            self._idle += 1
            try:
                answer = self._ask()
            except NoAnswerError as error:
                log.warning("the model gave no answer, so it proposes nothing more here: %s", error)
                self._transcript.add("no-answer", reason=str(error))
                break
            if answer.stop_reason == "refusal":
                log.warning("the model refused to go on%s",
                            f": {answer.explanation}" if answer.explanation else "")
                break
            if answer.stop_reason == "model_context_window_exceeded":
                self._conversation.restart(self._record())
                continue
            self._conversation.answered(answer.content)
            if not (yield from self._react(answer)):
                break
            if context(answer.usage) > self._bounds.context_tokens:
                self._summarise()

    def _react(self, answer: Answer) -> Generator[Proposal, Feedback | None, bool]:
        """Do what an answer asks for; whether the conversation goes on."""
        if answer.stop_reason == "pause_turn":
            return True
        uses = [block for block in answer.content if block["type"] == "tool_use"]
        cut_off = answer.stop_reason == "max_tokens"
        self._cut_off = self._cut_off + 1 if cut_off else 0
        if self._cut_off >= _MOST_CUT_OFF:
            log.warning("%d answers in a row were cut off at proposer.max_tokens, so the model "
                        "proposes nothing more here", self._cut_off)
            return False
        if not uses:
            if cut_off or not self._nudged:
                self._nudged = not cut_off
                self._conversation.say(_CUT_OFF if cut_off else _NUDGE)
                return True
            return False
        results = []
        for use in uses:
            # Only the last block can be the one that the limit cut through.
            cut = cut_off and use is answer.content[-1]
            if use["name"] == SUBMIT:
                results.append((yield from self._submit(use, cut)))
            else:
                results.append(self._look(use, cut))
        self._conversation.results(results)
        return True

    def _submit(
        self, use: Mapping[str, Any], cut: bool
    ) -> Generator[Proposal, Feedback | None, dict[str, Any]]:
        """Propose what was submitted, and give the result of the tool."""
        read = Malformed((_CUT_OFF,)) if cut else self._reader.submission(use["input"])
        if isinstance(read, Malformed):
            feedback = yield self._proposal(
                read.edits, f"malformed edits: {read.sentence}", rule="malformed")
            self._heard(feedback)
            self._remember(f"malformed: {read.sentence}")
            return self._result(use, json.dumps(
                {"refused": "malformed", "problems": list(read.problems), "counted": True},
                indent=1), error=True)
        feedback = yield self._proposal(read.edits, "", submission=read)
        self._heard(feedback)
        verdict = _verdict(read, feedback, self._evidence.speedup)
        places = ", ".join(f"{e.start}-{e.stop}" for e in read.edits[:8])
        self._remember(f"{read.direction.value} at {places}: {read.rationale} -> {verdict}")
        return self._result(use, verdict, error=False)

    def _proposal(
        self, edits: Any, refusal: str, *, rule: str = "agent",
        submission: Submission | None = None,
    ) -> Proposal:
        directions = self._evidence.directions or tuple(Direction)
        proposal = Proposal(
            edits=tuple(edits), rule=rule, direction=directions[0], rationale=refusal,
            proposer=NAME, refusal=refusal)
        if submission is not None:
            proposal = replace(
                proposal, direction=submission.direction, rationale=submission.rationale,
                assumption=submission.assumption)
        self._transcript.add(
            "proposal", edits=[[e.start, e.stop, list(e.lines)] for e in proposal.edits],
            direction=proposal.direction.value, rationale=proposal.rationale,
            assumption=proposal.assumption, refusal=refusal)
        return proposal

    def _heard(self, feedback: Feedback | None) -> None:
        if feedback is None:
            return
        self._transcript.add(
            "feedback", gate=feedback.gate, code=feedback.code, reason=feedback.reason,
            speedup=feedback.speedup, duplicate=feedback.duplicate)
        if not feedback.duplicate:
            self._idle = 0
            self._nudged = False

    def _look(self, use: Mapping[str, Any], cut: bool) -> dict[str, Any]:
        """The answer of a reading tool."""
        try:
            if cut:
                raise ViewError(_CUT_OFF)
            return self._result(use, self._answer(use["name"], use["input"]), error=False)
        except (ViewError, AsmEvoError) as error:
            return self._result(use, str(error), error=True)

    def _answer(self, name: str, given: Any) -> str:
        if name == CHECK:
            return self._reader.check(given)
        view = self._view
        plain: dict[str, Callable[[], str]] = {
            "overview": view.overview, "list_windows": view.windows, "history": view.history}
        ranged: dict[str, Callable[[int, int], str]] = {
            "read_instructions": view.instructions, "dependences": view.dependences,
            "registers": view.registers}
        if name in plain:
            return plain[name]()
        if name in ranged:
            return ranged[name](_number(given, "start"), _number(given, "stop"))
        if name == "hottest_instructions":
            return view.hottest(_number(given, "count"))
        raise ViewError(f"there is no tool '{line(name, 60)}'")

    def _result(self, use: Mapping[str, Any], text: str, *, error: bool) -> dict[str, Any]:
        return {
            "type": "tool_result", "tool_use_id": use["id"], "is_error": error,
            "content": [{"type": "text", "text": marked(text, _LONGEST_RESULT)}],
        }

    def _ask(self, **more: Any) -> Answer:
        """Send the conversation; everything that it cost is in the ledger afterwards."""
        request = {**self._fixed, **more, "messages": self._conversation.request()}
        self._transcript.add(
            "request", messages=self._conversation.unnoted(), count=len(request["messages"]),
            **more)
        lost: list[Usage] = []
        try:
            answer = self._client.ask(request, lost)
        finally:
            for usage in lost:
                self._ledger.add(usage)
        spent = self._ledger.add(answer.usage)
        usage = answer.usage
        self._transcript.add(
            "response", id=answer.request_id, content=answer.content, stop=answer.stop_reason,
            tokens=spent.tokens, cost=spent.cost, usage={
                "input": usage.input_tokens, "output": usage.output_tokens,
                "cache_write": usage.cache_creation_input_tokens or 0,
                "cache_read": usage.cache_read_input_tokens or 0})
        return answer

    def _summarise(self) -> None:
        """Replace the conversation by what the model makes of it, and by our own record."""
        self._conversation.say(SUMMARISE)
        summary = ""
        try:
            answer = self._ask(tool_choice={"type": "none"})
            summary = "\n".join(b["text"] for b in answer.content if b["type"] == "text")
        except NoAnswerError as error:
            # The record alone has to do; the next request shows whether the API is back.
            log.info("no summary: %s", error)
        self._conversation.restart("\n\n".join(filter(None, (summary, self._record()))))
        self._transcript.add("summary", text=summary)

    def _remember(self, outcome: str) -> None:
        self._outcomes.append(outcome)

    def _record(self) -> str:
        """Submissions and what became of them, whatever a summary says."""
        if not self._outcomes:
            return "Nothing has been submitted yet."
        return f"Submissions so far ({len(self._outcomes)}, the latest last):\n" + marked(
            "\n".join(line(o) for o in self._outcomes[-_REMEMBERED:]), _LONGEST_RESULT)


def _brief(evidence: Evidence) -> str:
    """The assignment in words of ours alone: nothing from the object is in it."""
    wanted = ", ".join(d.value for d in evidence.directions) or "any direction"
    return (
        f"Improve the base kernel. It has {len(evidence.program)} instructions and "
        f"{len(evidence.windows)} hot windows, and runs {evidence.speedup:.4f} times as fast as "
        f"the original. Directions of this assignment: {wanted}. Begin with overview, list_windows "
        "and history."
    )


def _number(given: Any, name: str) -> int:
    value = given.get(name) if isinstance(given, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise ViewError(f"'{name}' must be a whole number")
    return value


def _verdict(submission: Submission, feedback: Feedback | None, base: float) -> str:
    """What became of a submission, for the model."""
    note = f" ({submission.note})" if submission.note else ""
    if feedback is None:
        return f"not judged{note}"
    if feedback.duplicate:
        return f"duplicate: this very kernel was judged before, so it is no attempt{note}"
    if feedback.passed:
        assert feedback.speedup is not None
        return (f"passed G0 to G3: speedup {feedback.speedup:.4f} over the original, the base has "
                f"{base:.4f}{note}")
    timed = "" if feedback.speedup is None else f" (speedup {feedback.speedup:.4f})"
    return f"rejected at {feedback.gate}, {feedback.code}: {feedback.reason}{timed}{note}"
