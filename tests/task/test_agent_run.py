"""A whole search with the agent, from the command line, against a scripted Messages API."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from pytest_httpserver import HTTPServer

from asmevo.__main__ import config_folder
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.recover import recover
from asmevo.config import register
from asmevo.dispatch.dispatch import Dispatch
from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import RuleContext
from asmevo.propose.rules.dead_code import DeadCode
from asmevo.task.session import Session
from tests.propose.agent.messages_api import MessagesApi, Turn, failure, submit, text, tool
from tests.task.conftest import CommandLine

KEY = "sk-test-opens-nothing"
SHORT = ("kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[{M:4}]")
DONE = Turn([text("nothing promising is left")])


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return (*SHORT, "proposer=anthropic", "search.budget.attempts=4")


def dead_code(data: bytes) -> list[tuple[int, int, list[str]]]:
    """Edits that delete what nothing uses."""
    code_object = CodeObject.parse(data)
    symbol = code_object.kernel().symbol
    lines = tuple(x.text for x in recover(code_object).body(symbol).lines if x.text)
    context = RuleContext(Evidence(symbol, program(code_object), lines, (), (), 1.0))
    return [(e.start, e.stop, list(e.lines)) for e in next(DeadCode().matches(context)).edits]


def held_out(folder: Path) -> list[Dispatch]:
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        config = compose("config", overrides=[*SHORT, f"registry.path={folder}/other"])
    return [d for d in Session(config, folder).baseline.dispatches if d.held_out]


def test_scripted_edits_are_verified_committed_and_repeated(
        command_line: CommandLine, read_result: Callable[[], dict[str, Any]],
        layer_norm_bytes: bytes, settings: tuple[str, ...], httpserver: HTTPServer,
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = dead_code(layer_norm_bytes)
    api = MessagesApi(httpserver, [
        Turn([tool("overview"), tool("list_windows"), tool("history")], input_tokens=5000),
        failure(529, "overloaded_error"),
        Turn([submit((0, 9999, []))]),  # malformed
        Turn([submit((0, 40, []))]),  # wrong: deletes the beginning
        Turn([submit(*edits)]), DONE, DONE, DONE, DONE])
    done = command_line(*settings, f"proposer.base_url={api.url}")
    assert done.returncode == 0, done.stdout + done.stderr
    result = read_result()
    assert result["status"] == "committed"
    assert result["commits"] == 1
    folder = Path(result["folder"])
    attempts = [json.loads(line) for line in (folder / "attempts.jsonl").open()]
    assert (attempts[0]["rule"], attempts[0]["code"]) == ("malformed", "edit-refused")
    assert (attempts[1]["rule"], attempts[1]["outcome"]) == ("agent", "fail")
    assert attempts[2]["node"] == 1
    assert attempts[2]["sha256"] == result["replacement_sha256"]
    transcript = [json.loads(line) for line in (folder / "transcript.jsonl").open()]
    spent = sum(e["tokens"] for e in transcript if e["event"] == "response")
    # The controller's books are the proposer's.
    assert result["spent"]["tokens"] == spent
    assert result["spent"]["cost"] == pytest.approx(
        sum(e["cost"] for e in transcript if e["event"] == "response"))
    # Nothing of the held-out inputs, and no key, has left the machine or been written down.
    said = json.dumps(api.requests) + (folder / "transcript.jsonl").read_text()
    hidden = held_out(tmp_path)
    assert hidden
    for dispatch in hidden:
        assert dispatch.name not in said
        assert dispatch.sha256 not in said
    assert KEY not in said
    assert "Authorization" not in said

    # The same lineage again, with neither a key nor a server.
    asked = len(api.requests)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    done = command_line(*SHORT, "proposer=replay", f"proposer.transcript={folder}",
                        "search.budget.attempts=4")
    assert done.returncode == 0, done.stdout + done.stderr
    (again,) = [p for p in tmp_path.glob("runs/**/lineage.json") if p.parent.name != folder.name]
    assert [n["sha256"] for n in json.loads(again.read_text())] == [
        n["sha256"] for n in json.loads((folder / "lineage.json").read_text())]
    assert len(api.requests) == asked


def test_the_budget_for_tokens_ends_the_search(
        command_line: CommandLine, read_result: Callable[[], dict[str, Any]],
        settings: tuple[str, ...], httpserver: HTTPServer) -> None:
    turns = [Turn([submit((0, 9000 + n, []))], input_tokens=5000) for n in range(9)]
    api = MessagesApi(httpserver, list(turns))
    done = command_line(*settings, f"proposer.base_url={api.url}", "search.budget.tokens=12000",
                        "search.budget.attempts=9")
    assert done.returncode == 1, done.stderr
    result = read_result()
    assert result["stopped"] == "tokens"
    assert result["attempts"] == len(api.requests) == 3


def test_no_answer_ends_the_search_with_one_warning(
        command_line: CommandLine, read_result: Callable[[], dict[str, Any]],
        settings: tuple[str, ...], httpserver: HTTPServer) -> None:
    api = MessagesApi(httpserver, [failure(529, "overloaded_error", "Overloaded")], repeat=True)
    done = command_line(*settings, f"proposer.base_url={api.url}", "proposer.max_retries=1")
    assert done.returncode == 1
    assert "the model gave no answer" in done.stderr
    assert "overloaded" in done.stderr
    assert "Traceback" not in done.stderr
    assert read_result()["stopped"] == "exhausted"


def test_no_key_is_one_sentence(
        command_line: CommandLine, settings: tuple[str, ...], tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path / "none"))
    done = command_line(*settings)
    assert done.returncode == 2
    (sentence,) = done.stderr.strip().splitlines()
    assert sentence.startswith("asmevo: proposer=anthropic needs a key: set ANTHROPIC_API_KEY")
