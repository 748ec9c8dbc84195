"""The end of a search on a terminal: what there is is shown, and nothing depends on a file."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from asmevo.report.result import Result, Status
from asmevo.report.search_result import read_lineage, search_shown
from asmevo.report.terminal import print_result


def node(number: int, parent: int | None, **changes: Any) -> dict[str, Any]:
    return {"number": number, "parent": parent, "sha256": f"{number:064x}",
            "speedup": 1.0 + number / 100, "rule": "hoist-loads" if number else "",
            "direction": "latency-hiding" if number else None, "rationale": "why",
            "candidate": f"run-{number}", "parents": [], **changes}


def result(folder: Path, **changes: Any) -> Result:
    return Result(
        "optimize", Status.COMMITTED, kernel="k", folder=str(folder), speedup=1.02,
        replacement_sha256="1" * 64, attempts=40, commits=2,
        verdicts={"G0": {"pass": 40, "fail": 0, "missing": 0}},
        rules={"hoist-loads": {"proposed": 30, "passed": 20, "accepted": 2, "gain": 0.0198},
               **{f"rule-{n}": {"proposed": 1, "passed": 0, "accepted": 0, "gain": 0.0}
                  for n in range(20)}},
        timings=[{"dispatch": "M2-normal", "original_us": 4.63, "replacement_us": 4.42,
                  "speedup": 1.0475, "again_speedup": None}], **changes)


def shown(found: Result, width: int = 80) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    for part in search_shown(found):
        console.print(part)
    return out.getvalue()


def test_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "lineage.json").write_text(json.dumps([node(0, None), node(1, 0), node(2, 1)]))
    text = shown(result(tmp_path))
    assert max(map(len, text.splitlines())) <= 80
    assert "● 2 1.0200x hoist-loads (latency-hiding)" in text
    assert "hoist-loads        " in text
    assert "6.7 %  +2.00 %" in text
    assert "9 more in report.html" in text
    assert "1.0475x" in text


def test_several_rules_at_once_are_one_line(tmp_path: Path) -> None:
    one = {"proposed": 5, "passed": 4, "accepted": 0, "gain": 0.0}
    text = shown(replace(result(tmp_path), rules={
        "a": one, "a+b": one, "a+c": {**one, "gain": 0.01}}))
    assert " ".join(next(line for line in text.splitlines() if "several" in line).split()) == (
        "several rules at once 10 8 0 0.0 % +1.01 %")
    assert "a+b" not in text


@pytest.mark.parametrize("content", [
    None, "", "5", "[{}]", "[]", json.dumps([node(0, None), node(1, 1)]),
    json.dumps([node(0, None), node(1, None)]), json.dumps([node(3, None)])])
def test_a_lineage_that_is_none(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "lineage.json").write_text(content)
    assert read_lineage(tmp_path) == ()
    assert "●" not in shown(result(tmp_path))


def test_a_search_that_found_nothing(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = Result("optimize", Status.NONE, kernel="k", folder=str(tmp_path), speedup=1.0)
    assert shown(found) == ""
    print_result(found)
    assert "none" in capsys.readouterr().out


def test_names_stay_text(tmp_path: Path) -> None:
    hostile = "[red]x\x1b[2J"
    (tmp_path / "lineage.json").write_text(json.dumps(
        [node(0, None), node(1, 0, rule=hostile, direction=hostile)]))
    found = result(tmp_path, proposers={hostile: {"proposed": 1}, "b": {"proposed": 1}})
    found.timings[0]["dispatch"] = hostile
    text = shown(found, 120)
    assert "\x1b" not in text
    assert text.count("[red]x") >= 3
