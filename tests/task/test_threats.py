"""The threat model from the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import asmevo.report.result
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.report.marked import MarkerError, markers
from asmevo.report.result import Result, Status
from asmevo.report.threats import MARKER, markdown
from asmevo.task.session import ConfigError
from asmevo.threats.corpus import CORPUS
from asmevo.threats.threat import Judgement, Kind

RunTask = Callable[..., Result]

SMALL = ("task=threats", "task.kernels=[scaled_sum]", "task.rows=[B16,B21,wrong,equal]")
SCHEMA = json.loads(
    (Path(asmevo.report.result.__file__).parent / "result.schema.json").read_text())


def test_all_are_caught(run: RunTask, tmp_path: Path) -> None:
    document = tmp_path / "threats.md"
    begin, end = markers(MARKER)
    document.write_text(f"head\n{begin}\nold\n{end}\ntail\n")
    result = run(*SMALL, f"readme={document}")
    assert result.status is Status.SOUND
    assert result.exit_status == 0
    jsonschema.validate(json.loads(result.to_json()), SCHEMA)
    details = result.details
    assert details is not None
    counts = details["counts"]
    assert counts["CHEAT SUCCEEDED"] == counts["FALSE REJECTION"] == details["elsewhere"] == 0
    assert sum(counts.values()) == len(details["threats"]) == result.attempts
    assert {e["row"] for e in details["threats"]} == {"B16", "B21", "wrong", "equal"}
    lines = (Path(str(result.folder)) / "threats.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == details["threats"]
    text = document.read_text()
    assert text.startswith("head\n")
    assert text.endswith("tail\n")
    assert "old" not in text
    assert "| B16 | the bounds check is dropped | scaled_sum | CAUGHT |" in text


def test_what_gets_through_ends_with_1(run: RunTask) -> None:
    """Gates that look at nothing but time."""
    blind = "asmevo.threats.blind.Blind"
    result = run("task=threats", "task.kernels=[scaled_sum]", "task.rows=[B20]",
                 "gates.isolate=false", "gates.sanitize=false",
                 f"gates.static={{_target_: {blind}, gate: G1}}",
                 f"gates.equality={{_target_: {blind}, gate: G2, repeats: 3, loads: true}}")
    assert result.status is Status.FOOLED
    assert result.exit_status == 1
    assert result.details is not None
    assert result.details["counts"]["CHEAT SUCCEEDED"] > 0


def test_a_kernel_of_ones_own(run: RunTask) -> None:
    result = run("task=threats", "task.kernels=[own]", "kernel=scaled_sum", "task.rows=[B1,B19]")
    assert result.status is Status.SOUND
    assert result.details is not None
    assert {e["kernel"] for e in result.details["threats"]} == {"own"}


@pytest.mark.parametrize(("overrides", "message"), [
    (("task.rows=[B99]",), "'B99'"),
    (("task.kernels=[nonsense]",), "'nonsense'"),
    (("task.kernels=[]",), "nothing"),
    (("task.subjects.gemm=3",), "gemm is no kernel"),
    (("task.kernels=[fmoe]", "task.rows=[B16]"), "in common"),
])
def test_what_there_is_not_is_refused(
        run: RunTask, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run("task=threats", *overrides)


def test_a_document_without_markers_is_refused_before_the_work(
        run: RunTask, tmp_path: Path) -> None:
    document = tmp_path / "threats.md"
    document.write_text("nothing")
    with pytest.raises(MarkerError):
        run(*SMALL, f"readme={document}")


def test_a_terminal_shows_rows_and_the_verdict(
        command_line: Callable[..., subprocess.CompletedProcess[str]],
        read_result: Callable[[], dict[str, Any]]) -> None:
    done = command_line(*SMALL)
    assert done.returncode == 0, done.stderr
    assert "B16" in done.stdout
    assert "sound:" in done.stdout
    result = read_result()
    assert (result["task"], result["status"]) == ("threats", "sound")
    jsonschema.validate(result, SCHEMA)


def test_markdown_of_hostile_names() -> None:
    entry = {"row": "B1", "title": "a|b<script>", "kernel": "k", "kind": "cheat",
             "judgement": "CHEAT SUCCEEDED", "gate": "G4", "code": "ok", "as_told": False,
             "without": "static checks", "believed": True, "speedup": 2.0, "depth": None}
    details = {"threats": [entry], "counts": {"CHEAT SUCCEEDED": 1}, "shallow": 0}
    text = markdown(details, "d")
    assert r"| B1 | a\|b&lt;script> | k | CHEAT SUCCEEDED | G4 | ok (another than named) | " in text
    assert "believed, 2.000x" in text


@pytest.mark.parametrize(("kind", "gate", "stopped", "outcome", "expected"), [
    (Kind.CHEAT, Gate.G1, Gate.G1, Outcome.FAIL, Judgement.CAUGHT),
    (Kind.CHEAT, Gate.G2, Gate.G1, Outcome.FAIL, Judgement.CAUGHT),
    (Kind.CHEAT, Gate.G1, Gate.G2, Outcome.FAIL, Judgement.CAUGHT),
    (Kind.CHEAT, Gate.G2, Gate.G2, Outcome.MISSING, Judgement.CAUGHT),
    (Kind.CHEAT, Gate.G2, Gate.G4, Outcome.FAIL, Judgement.SUCCEEDED),
    (Kind.CHEAT, Gate.G2, Gate.G4, Outcome.PASS, Judgement.SUCCEEDED),
    (Kind.CHEAT, Gate.G4, Gate.G4, Outcome.FAIL, Judgement.CAUGHT),
    (Kind.CHEAT, Gate.G4, Gate.G4, Outcome.PASS, Judgement.SUCCEEDED),
    (Kind.EQUIVALENT, None, Gate.G4, Outcome.FAIL, Judgement.ACCEPTED),
    (Kind.EQUIVALENT, None, Gate.G4, Outcome.PASS, Judgement.ACCEPTED),
    (Kind.EQUIVALENT, None, Gate.G3, Outcome.MISSING, Judgement.FALSE_REJECTION),
    (Kind.EQUIVALENT, None, Gate.G2, Outcome.MISSING, Judgement.FALSE_REJECTION),
    (Kind.EQUIVALENT, None, Gate.G1, Outcome.FAIL, Judgement.FALSE_REJECTION),
])
def test_judgements(kind: Kind, gate: Gate | None, stopped: Gate, outcome: Outcome,
                    expected: Judgement) -> None:
    threat = replace(CORPUS[0], kind=kind, gate=gate)
    assert threat.judgement((Verdict(stopped, outcome, "code", "reason"),)) is expected
