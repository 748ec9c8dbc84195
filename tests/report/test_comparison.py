"""A table over several searches counts what the second timing confirms."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from asmevo.report.comparison import (
    ComparisonError,
    ComparisonTable,
    Summary,
    from_dict,
    load_results,
    markdown,
    summarise,
    to_dict,
    to_json,
)
from asmevo.report.result import SCHEMA


def timing(original: float, best: float | None, again: float | None = None,
           name: str = "M2-normal") -> dict[str, Any]:
    return {"dispatch": name, "original_us": original, "replacement_us": best,
            "speedup": None if best is None else original / best,
            "again_original_us": None if again is None else original, "again_us": again,
            "again_speedup": None if again is None else original / again}


def result(kernel: str, **changes: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "task": "optimize", "kernel": kernel, "status": "committed",
            "speedup": 1.5, "speedup_again": 1.44, "attempts": 40, "commits": 2,
            "timing_source": "modelled", "device": "emulator:x", "wall_seconds": 2.0,
            "timings": [timing(8.0, 4.0, 5.0), timing(2.0, 1.0, 1.0, "M9-normal")],
            "stopped": "attempts", "error": None, **changes}


def shown(summary: Summary, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(ComparisonTable(summary))
    return out.getvalue()


def test_figures_of_one_run() -> None:
    (row,) = summarise([result("a")]).rows
    assert row.original_us == pytest.approx(4.0)
    assert row.best_us == pytest.approx(math.sqrt(5.0))
    assert (row.best_case, row.best_case_speedup) == ("M9-normal", 2.0)
    assert (row.improved, row.reported, row.acceptance) == (True, 1.44, 0.05)


@pytest.mark.parametrize(("changes", "reported"), [
    ({}, 1.44),
    ({"speedup_again": 0.99, "status": "none"}, 1.0),
    ({"speedup_again": None, "status": "none"}, 1.0),
    ({"speedup": 1.0, "speedup_again": None, "status": "none", "commits": 0}, 1.0),
    ({"speedup": None, "speedup_again": None, "status": "error", "error": "no object"}, 1.0),
    ({"status": "interrupted"}, 1.44),
    ({"speedup_again": 9.0, "status": "none"}, 1.0),
])
def test_only_the_second_timing_counts(changes: dict[str, Any], reported: float) -> None:
    summary = summarise([result("a", **changes), result("b", speedup_again=2.0)])
    assert summary.rows[0].reported == reported
    assert summary.totals.geometric_mean == pytest.approx(math.sqrt(2.0 * reported))
    assert summary.totals.improved == (2 if reported > 1 else 1)
    assert (summary.totals.best, summary.totals.largest) == ("b", 2.0)


def test_groups_have_totals_of_their_own() -> None:
    summary = summarise(
        [result("l1_sum", speedup_again=4.0), result("l1_max", speedup_again=1.0, status="none"),
         result("l2_gelu")], {"Level 1": "l1_*", "Level 2": "l2_*", "none": "l3_*"})
    assert [(g.name, g.kernels, g.improved) for g in summary.groups] == [
        ("Level 1", 2, 1), ("Level 2", 1, 1)]
    assert summary.groups[0].geometric_mean == pytest.approx(2.0)
    assert "Level 1: 1 of 2 improved" in markdown(summary)


def test_a_run_without_timings_has_no_latencies() -> None:
    (row,) = summarise([result("a", timings=[])]).rows
    assert (row.original_us, row.best_us, row.best_case) == (None, None, None)
    (row,) = summarise([result("a", timings=[timing(8.0, None)], status="none")]).rows
    assert row.original_us == pytest.approx(8.0)
    assert row.best_us is None


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_fit_the_terminal(width: int) -> None:
    text = shown(summarise([result("kernelbench_l1_depthwise_conv2d"),
                            result("aiter_layer_norm")]), width)
    assert max(map(len, text.splitlines())) <= width
    assert ("M9-normal" in text) is (width == 120)
    if width >= 80:
        assert "kernelbench_l1_depthwise" in text
        assert len(text.splitlines()) <= 8


def test_names_are_escaped() -> None:
    text = markdown(summarise([result("a|b\x1b[31m<script>", error="<b>", status="error")]))
    assert "\x1b" not in text
    assert "<script>" not in text
    assert "<b>" not in text
    assert "a\\|b" in text
    assert "\x1b" not in shown(summarise([result("a\x1b[31m")]), 80)


def test_runs_of_one_kernel_are_told_apart(tmp_path: Path) -> None:
    for number, lines in enumerate(("- proposer=rules\n- search=team\n",
                                    "- proposer=scheduler\n- search=team\n",
                                    "- proposer=scheduler\n- search=team\n")):
        write(tmp_path / str(number), result("k"))
        (tmp_path / str(number) / ".hydra").mkdir()
        (tmp_path / str(number) / ".hydra" / "overrides.yaml").write_text(lines)
    write(tmp_path / "3", result("other"))
    summary = summarise(load_results([tmp_path]))
    assert [row.label for row in summary.rows] == [
        "proposer=rules", "proposer=scheduler 1", "proposer=scheduler 2", ""]
    assert "| k proposer=rules |" in markdown(summary)
    assert [row.label for row in summarise([result("k"), result("k", folder="/runs/x")]).rows] == [
        "", "x"]


def test_proposers_and_rules_are_added_up() -> None:
    def record(proposed: int, accepted: int, gain: float) -> dict[str, float]:
        return {"proposed": proposed, "passed": proposed, "accepted": accepted, "gain": gain,
                "seconds": 1.0}

    summary = summarise([
        result("a", rules={"hoist": record(30, 2, 0.1), "nops": record(5, 0, 0.0)},
               proposers={"rules": record(35, 2, 0.1), "scheduler": record(4, 1, 0.3)}),
        result("b", rules={"hoist": record(10, 0, 0.1)}, proposers={"rules": record(10, 0, 0.1)}),
        result("c", rules=None)])
    assert [(r.name, r.proposed, r.accepted, r.kernels) for r in summary.rules] == [
        ("hoist", 40, 2, 1), ("nops", 5, 0, 0)]
    assert summary.rules[0].gain == pytest.approx(0.2)
    assert summary.rules[0].share == pytest.approx(0.05)
    assert [p.name for p in summary.proposers] == ["scheduler", "rules"]
    assert from_dict(json.loads(to_json(summary))) == summary
    text, document = shown(summary, 80), markdown(summary)
    assert "hoist" in text
    assert "| hoist | 40 | 40 | 2 | 5.0 % | 1 | +6.89 % |" in document
    assert "| scheduler |" in document


def test_several_rules_at_once_are_one_line() -> None:
    """Whatever they are; a search in which two such candidates were committed is one search."""
    one = {"proposed": 3, "passed": 2, "accepted": 1, "gain": 0.1, "seconds": 1.0}
    none = {**one, "accepted": 0, "gain": 0.0}
    summary = summarise([
        result("a", rules={"a": one, "a+b": one, "b+c": one, "a+b+c": none}),
        result("b", rules={"a+c": none})])
    assert [(r.name, r.proposed, r.passed, r.accepted, r.kernels) for r in summary.rules] == [
        ("several rules at once", 12, 8, 2, 1), ("a", 3, 2, 1, 1)]
    assert summary.rules[0].gain == pytest.approx(0.2)
    assert "| several rules at once | 12 | 8 | 2 | 16.7 % | 1 |" in markdown(summary)
    assert "+b" not in markdown(summary)


def test_documents_round_trip() -> None:
    summary = summarise([result("a"), result("b", status="error", error="no")], {"all of it": "*"})
    assert from_dict(json.loads(to_json(summary))) == summary
    assert to_dict(summary)["rows"][0]["reported"] == 1.44


def write(folder: Path, content: object) -> None:
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(content))


def test_results_of_a_sweep_in_the_order_of_its_jobs(tmp_path: Path) -> None:
    for number in (10, 2, 0):
        write(tmp_path / str(number), result(f"k{number}"))
    write(tmp_path / "11", result("other", task="verify"))
    found = load_results([tmp_path, tmp_path / "2" / "result.json"])
    assert [r["kernel"] for r in found] == ["k0", "k2", "k10", "k2"]
    assert found[0]["folder"] == str(tmp_path / "0")


@pytest.mark.parametrize("content", [None, [], {"schema": "asmevo.result/9"}, {"task": "x"}])
def test_what_is_no_result(tmp_path: Path, content: object) -> None:
    if content is not None:
        write(tmp_path / "run", content)
    with pytest.raises(ComparisonError):
        load_results([tmp_path / "run"])
