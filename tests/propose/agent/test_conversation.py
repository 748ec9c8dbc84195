"""What an agent asks, proposes and hears, through the real SDK."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.propose.proposal import Direction, Evidence, Feedback, Proposal
from tests.propose.agent.conftest import (
    KERNEL_TEXT,
    KEY,
    Agent,
    collect,
    last_results,
    rejected,
    result_text,
)
from tests.propose.agent.messages_api import Turn, submit, text, tool
from tests.propose.conftest import KERNEL, Kernels

DONE = Turn([text("nothing promising is left")])


def test_edits_become_a_proposal_and_the_verdict_comes_back(
        agent: Agent, evidence: Evidence) -> None:
    def judge(proposal: Proposal) -> Feedback:
        return Feedback(proposal, speedup=1.0312)

    (proposal,) = agent.run(
        evidence,
        Turn([text("let me look"), tool("list_windows"),
              tool("read_instructions", start=0, stop=4)]),
        Turn([submit((0, 2, []), assumption="none at all")]),
        DONE, DONE, judge=judge)
    assert proposal.edits == (Edit(KERNEL, 0, 2, (), "agent"),)
    assert proposal.direction is Direction.SIMPLIFICATION
    assert (proposal.rationale, proposal.assumption) == ("nothing reads it", "none at all")
    assert (proposal.proposer, proposal.refusal) == ("anthropic", "")
    windows, lines = map(result_text, last_results(agent.requests[1]))
    assert "no hot windows" in windows
    assert "2 | 0 | 0 | v_mov_b32_e32 v3, 1.0\nloop:\n3 |" in lines
    (verdict,) = last_results(agent.requests[2])
    assert verdict["is_error"] is False
    assert "passed G0 to G3: speedup 1.0312" in result_text(verdict)


def test_a_rejection_names_gate_code_and_reason(agent: Agent, evidence: Evidence) -> None:
    agent.run(evidence, Turn([submit((0, 1, []))]), DONE, DONE)
    (verdict,) = last_results(agent.requests[1])
    assert "rejected at G2, bits: dispatch 'a', region 'out'" in result_text(verdict)


def test_every_tool_answers(agent: Agent, evidence: Evidence) -> None:
    evidence = replace(evidence, insights=("hoisting loads has helped",))
    agent.run(evidence, Turn([
        tool("overview"), tool("history"), tool("hottest_instructions", count=3),
        tool("dependences", start=3, stop=6), tool("registers", start=3, stop=6),
        tool("check_edits", edits=[{"start": 0, "stop": 2, "lines": []}]),
        tool("check_edits", edits=[{"start": 0, "stop": 2, "lines": ["v_no_such v1"]}]),
    ]), DONE, DONE)
    results = last_results(agent.requests[1])
    texts = [result_text(r) for r in results]
    assert not any(r["is_error"] for r in results)
    assert "registers used: 4 VGPRs, 0 AGPRs, 4 SGPRs, which allow 8 waves per SIMD" in texts[0]
    assert "loop: instructions 3 to 7" in texts[0]
    assert "insight: hoisting loads has helped" in texts[1]
    assert "4 -> 5 raw s0" in texts[3]
    assert "free throughout, below the present allocation: v1, v2" in texts[4]
    assert "7 instructions instead of 9" in texts[5]
    assert "not well-formed" in texts[6]


@pytest.mark.parametrize("use", [
    tool("read_instructions", start=0, stop=999), tool("read_instructions", start="0", stop=1),
    tool("read_instructions"), tool("dependences", start=0, stop=6),
    tool("hottest_instructions", count=0), tool("declare_success", speedup=9.0),
    tool("registers", start=True, stop=2),
])
def test_a_wrong_question_is_answered_and_costs_no_attempt(
        agent: Agent, evidence: Evidence, use: dict[str, Any]) -> None:
    assert agent.run(evidence, Turn([use]), DONE, DONE) == []
    (result,) = last_results(agent.requests[1])
    assert result["is_error"] is True


def test_waits_are_placed_on_request(agent: Agent, kernels: Any) -> None:
    evidence = kernels.evidence(
        "global_load_dword v1, v0, s[2:3]\ns_waitcnt vmcnt(0)\nv_add_f32_e32 v2, v1, v1\n"
        "v_mov_b32_e32 v3, 1.0\nglobal_store_dword v0, v2, s[2:3]\n"
        "global_store_dword v0, v3, s[2:3]\ns_endpgm")
    moved = [(1, 2, []), (3, 4, []), (2, 2, ["v_mov_b32_e32 v3, 1.0"])]
    (proposal,) = agent.run(
        evidence, Turn([submit(*moved, place_waits=True)]), DONE, DONE)
    lines = kernels.edited("\n".join(evidence.lines), proposal)
    assert lines[1:4] == ["v_mov_b32_e32 v3, 1.0", "s_waitcnt vmcnt(0)",
                          "v_add_f32_e32 v2, v1, v1"]
    (verdict,) = last_results(agent.requests[1])
    assert "waits were placed" in result_text(verdict)


MALFORMED: list[tuple[dict[str, Any], str, int]] = [
    ({"edits": "delete everything"}, "'edits' must be a list", 0),
    ({"edits": []}, "'edits' must be a list", 0),
    ({"edits": [7]}, "edit 0 must be an object", 0),
    ({"edits": [{"start": "0", "stop": 1, "lines": []}]}, "must be whole numbers", 0),
    ({"edits": [{"start": 0, "stop": 1, "lines": "s_nop 0"}]}, "must be a list of instruction", 0),
    ({"edits": [{"start": 0, "stop": 1, "lines": [], "kernel": "other"}]},
     "must be an object with start", 0),
    ({"edits": [{"start": 3, "stop": 99, "lines": []}]}, "does not hold for 3 and 99", 1),
    ({"edits": [{"start": -1, "stop": 0, "lines": []}]}, "does not hold", 1),
    ({"edits": [{"start": 0, "stop": 3, "lines": []}, {"start": 2, "stop": 4, "lines": []}]},
     "overlap", 2),
    ({"edits": [{"start": 0, "stop": 1, "lines": ["v_frobnicate_b32 v0, v1"]}]}, "line 0", 1),
    ({"edits": [{"start": 0, "stop": 1, "lines": [".incbin \"/etc/passwd\""]}]}, "a directive", 1),
    ({"edits": [{"start": 0, "stop": 1, "lines": ["s_nop 0\n.incbin \"x\""]}]}, "printable", 1),
    ({"edits": [{"start": 0, "stop": 1, "lines": ["s_nop 0 ; hidden"]}]}, "line 0", 1),
    ({"edits": [{"start": 0, "stop": 1, "lines": ["s_branch elsewhere"]}]}, "label of the", 1),
    ({"edits": [{"start": 0, "stop": 1, "lines": ["loop:", "s_nop 0"]}]}, "line 0", 1),
    ({"edits": [{"start": 0, "stop": 1, "lines": [".L_a:", ".L_a:"]}]}, "there already", 1),
    ({"edits": [{"start": 0, "stop": 1, "lines": ["v_mov_b32_e32 v1, 0"]}]}, "change nothing", 1),
    ({"direction": "sideways"}, "'direction' must be one of", 1),
    ({"direction": ["simplification"]}, "'direction' must be one of", 1),
    ({"rationale": ""}, "'rationale' must not be empty", 1),
    ({"rationale": 3}, "'rationale' must be text", 1),
    ({"place_waits": "yes"}, "true or false", 1),
    ({"verdict": "pass"}, "unknown field 'verdict'", 1),
]


@pytest.mark.parametrize(("given", "problem", "edits"), MALFORMED)
def test_malformed_edits_are_refused_with_reasons_and_counted(
        agent: Agent, evidence: Evidence, given: dict[str, Any], problem: str, edits: int) -> None:
    use = submit((0, 1, []))
    use["input"].update(given)
    (proposal,) = agent.run(evidence, Turn([use]), DONE, DONE)
    assert proposal.rule == "malformed"
    assert proposal.refusal.startswith("malformed edits: ")
    assert len(proposal.edits) == edits
    (result,) = last_results(agent.requests[1])
    assert result["is_error"] is True
    body = result_text(result).removeprefix("<object-data>\n").removesuffix("\n</object-data>")
    refusal = json.loads(body)
    assert (refusal["refused"], refusal["counted"]) == ("malformed", True)
    assert any(problem in p for p in refusal["problems"]), refusal


def test_only_the_directions_of_the_assignment(agent: Agent, evidence: Evidence) -> None:
    wanted = replace(evidence, directions=(Direction.MEMORY_ACCESS,))
    (proposal,) = agent.run(wanted, Turn([submit((0, 2, []))]), DONE, DONE)
    # A controller skips other directions without a word: the refusal is of the wanted one.
    assert (proposal.rule, proposal.direction) == ("malformed", Direction.MEMORY_ACCESS)


def test_edits_may_bring_in_labels(agent: Agent, evidence: Evidence, kernels: Kernels) -> None:
    lines = ["s_branch .L_new", "s_nop 0", ".L_new:"]
    (proposal,) = agent.run(evidence, Turn([submit((0, 2, lines))]), DONE, DONE)
    assert proposal.refusal == ""
    assert kernels.edited(KERNEL_TEXT, proposal)[:4] == [
        "s_branch .L_new", "s_nop 0", ".L_new:", "v_mov_b32_e32 v3, 1.0"]


def test_several_submissions_in_one_answer(agent: Agent, evidence: Evidence) -> None:
    first, second = submit((0, 2, [])), submit((1, 2, []))
    second["id"] = "toolu_second"
    proposals = agent.run(evidence, Turn([first, second]), DONE, DONE)
    assert [p.edits[0].start for p in proposals] == [0, 1]
    assert [r["tool_use_id"] for r in last_results(agent.requests[1])] == [
        "toolu_submit_edits", "toolu_second"]


def test_prefixes_are_cached_and_never_change(agent: Agent, evidence: Evidence) -> None:
    agent.run(evidence, Turn([tool("overview")]), Turn([tool("history")]),
              Turn([submit((0, 2, []))]), DONE, DONE)
    assert len(agent.requests) == 5

    def bare(messages: list[Any]) -> Any:
        out = copy.deepcopy(messages)
        for message in out:
            for block in message["content"]:
                block.pop("cache_control", None)
        return out

    for number, request in enumerate(agent.requests):
        assert request["stream"] is True
        assert request["tools"][-1]["cache_control"] == {"type": "ephemeral"}
        assert request["system"][-1]["cache_control"] == {"type": "ephemeral"}
        users = [m for m in request["messages"] if m["role"] == "user"]
        marks = json.dumps(request).count('"cache_control"')
        assert marks == min(4, 2 + len(users))
        assert users[-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
        if number:
            before = agent.requests[number - 1]
            assert (request["tools"], request["system"]) == (before["tools"], before["system"])
            size = len(before["messages"])
            assert bare(request["messages"])[:size] == bare(before["messages"])
            # What the last request wrote into the cache is marked again, so that it is read.
            assert request["messages"][size - 1]["content"][-1]["cache_control"]


def test_thinking_goes_back_as_it_came(agent: Agent, evidence: Evidence) -> None:
    thought = {"type": "thinking", "thinking": "the add is dead", "signature": "c2ln"}
    agent.run(evidence, Turn([thought, tool("overview")]), DONE, DONE)
    assert agent.requests[0]["thinking"] == {"type": "adaptive"}
    assert agent.requests[0]["output_config"] == {"effort": "high"}
    assert agent.requests[1]["messages"][1]["content"][0] == thought


def test_models_without_thinking(agent: Agent, evidence: Evidence) -> None:
    agent.run(evidence, DONE, DONE, thinking=None, effort=None)
    assert not {"thinking", "output_config"} & set(agent.requests[0])


def test_a_long_conversation_is_replaced_by_a_summary(agent: Agent, evidence: Evidence) -> None:
    proposals = agent.run(
        evidence,
        Turn([submit((0, 2, []))], input_tokens=40),
        Turn([tool("overview")], input_tokens=300, cache_read=900),
        Turn([text("The adds of v1 are dead.")]),  # the summary
        Turn([submit((1, 2, []))]), DONE, DONE, context_tokens=1000)
    assert [p.edits[0].start for p in proposals] == [0, 1]
    summary, after = agent.requests[2], agent.requests[3]
    assert summary["tool_choice"] == {"type": "none"}
    assert "Summarise for yourself" in summary["messages"][-1]["content"][-1]["text"]
    assert last_results(summary)  # every tool use is still answered
    (only,) = after["messages"]
    told = only["content"][0]["text"]
    assert told.startswith("Improve the base kernel.")
    assert "The adds of v1 are dead." in told
    # Our own record of what was submitted does not rest on the model's word.
    assert "Submissions so far (1" in told
    assert "rejected at G2, bits" in told
    assert "tool_choice" not in after


def test_a_context_that_is_full_starts_again_from_the_record(
        agent: Agent, evidence: Evidence) -> None:
    agent.run(evidence, Turn([submit((0, 2, []))]),
              Turn([], stop="model_context_window_exceeded"), DONE, DONE)
    (only,) = agent.requests[2]["messages"]
    assert "Submissions so far (1" in only["content"][0]["text"]


def test_an_answer_cut_off_by_its_limit(agent: Agent, evidence: Evidence) -> None:
    half = tool("submit_edits")
    half["raw"] = '{"edits": [{"start": 0, "stop": 2, "li'
    (proposal,) = agent.run(
        evidence, Turn([half], stop="max_tokens"), Turn([text("I was")], stop="max_tokens"),
        DONE, DONE)
    assert "cut off" in proposal.refusal
    assert last_results(agent.requests[1])[0]["is_error"] is True
    assert "cut off" in agent.requests[2]["messages"][-1]["content"][-1]["text"]


def test_answers_that_never_fit_end_the_turn(
        agent: Agent, evidence: Evidence, caplog: pytest.LogCaptureFixture) -> None:
    assert agent.run(evidence, Turn([text("I was")], stop="max_tokens"), repeat=True) == []
    assert len(agent.requests) == 3
    assert "cut off at proposer.max_tokens" in caplog.text


def test_a_paused_turn_is_sent_back(agent: Agent, evidence: Evidence) -> None:
    agent.run(evidence, Turn([text("one moment")], stop="pause_turn"), DONE, DONE)
    assert agent.requests[1]["messages"][-1]["role"] == "assistant"


def test_a_model_that_only_reads_is_stopped(agent: Agent, evidence: Evidence) -> None:
    proposals = agent.run(evidence, Turn([tool("overview")]), repeat=True, patience=5)
    assert proposals == []
    assert len(agent.requests) == 5


def test_duplicates_do_not_keep_it_alive(agent: Agent, evidence: Evidence) -> None:
    def judge(proposal: Proposal) -> Feedback:
        return Feedback(proposal, duplicate=True)

    proposals = agent.run(
        evidence, Turn([submit((0, 2, []))]), repeat=True, patience=4, judge=judge)
    assert len(proposals) == 4


def test_it_ends_when_the_search_has_enough(agent: Agent, evidence: Evidence, api: Any) -> None:
    server = api(Turn([submit((0, 2, []))]), DONE)
    proposer = agent.configured(server)
    assert len(collect(proposer, evidence, rejected, most=1)) == 1
    # Nothing more is spent.
    assert proposer.spent.tokens == 110
    assert len(server.requests) == 1


def test_the_key_is_sent_and_nowhere_else(agent: Agent, evidence: Evidence) -> None:
    agent.run(evidence, Turn([submit((0, 2, []))]), DONE, DONE)
    assert agent.server is not None
    assert agent.server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in agent.transcript.read_text()
    assert not any(KEY in json.dumps(request) for request in agent.requests)


def test_the_transcript_has_everything(agent: Agent, evidence: Evidence) -> None:
    agent.run(evidence, Turn([text("hm"), tool("overview")]), Turn([submit((0, 2, []))]),
              DONE, DONE)
    events = [json.loads(line) for line in agent.transcript.read_text().splitlines()]
    assert [e["event"] for e in events] == [
        "begin", "request", "response", "request", "response", "proposal", "feedback", "request",
        "response", "request", "response", "end"]
    # The messages of a request are those of all request events up to it and the answers between.
    rebuilt: list[Any] = []
    for event in events:
        if event["event"] == "request":
            rebuilt += [m for m in event["messages"] if m["role"] == "user"]
        elif event["event"] == "response":
            rebuilt.append({"role": "assistant", "content": event["content"]})
    sent = agent.requests[-1]["messages"]
    assert [m["role"] for m in rebuilt[:-1]] == [m["role"] for m in sent]
    assert events[0]["system"] == agent.requests[0]["system"]
    assert events[6]["code"] == "bits"
    assert events[-1]["tokens"] == 4 * 110
