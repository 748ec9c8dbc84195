"""What is committed with loosened gates is told apart from what the defaults let through."""

from __future__ import annotations

from pathlib import Path

import pytest

from asmevo.gates.commit import CommitGate
from asmevo.registry import pull
from asmevo.registry.errors import PullError, PullRefusal
from asmevo.registry.registry import Registry
from tests.task.conftest import RunTask

SETTINGS = ("kernel.shapes=[{M:2}]", "gates.isolate=false", "search.budget.attempts=1",
            "oracle.families=[normal]")
WARNING = "what is committed counts as judged by weaker gates"


def test_loosened_gates_are_warned_of_and_kept(
        run: RunTask, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    result = run(*SETTINGS, "kernel.held_out_shapes=[]",
                 "oracle.extreme_families=[]", "gates.cosine=1e-5", "gates.max_abs=1e30",
                 "kernel.operation=null")
    assert result.commits == 1
    [warning] = [r for r in caplog.records if WARNING in r.getMessage()]
    assert "gates.cosine was 1e-05, below 0.9999; gates.max_abs was 1e+30" in warning.getMessage()
    registry = Registry(tmp_path / "registry")
    [record] = registry.replacements()
    assert record.judgement is not None
    assert (record.judgement.dispatches, record.judgement.held_out) == (1, 0)
    assert (record.judgement.operation, record.judgement.families) == (None, ("normal",))
    with pytest.raises(PullError, match="no dispatch was held out") as caught:
        pull(registry, original=record.original_sha256, allow_modelled=True)
    assert caught.value.code is PullRefusal.WEAKER_GATES


def test_the_defaults_are_not_warned_of(
        run: RunTask, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert run(*SETTINGS, "kernel.held_out_shapes=[{M:4}]").commits == 1
    assert WARNING not in caplog.text
    registry = Registry(tmp_path / "registry")
    [record] = registry.replacements()
    assert record.weaknesses == ()
    assert record.judgement is not None
    assert record.judgement.oracle == "asmevo.dispatch.declared.DeclaredOracle"
    assert record.judgement.operation is not None
    pull(registry, original=record.original_sha256, allow_modelled=True)


def test_a_gate_of_ones_own_is_named(run: RunTask, tmp_path: Path) -> None:
    run(*SETTINGS, "kernel.held_out_shapes=[{M:4}]",
        "gates.commit={_target_: tests.task.test_weaker_gates.Lenient}")
    [record] = Registry(tmp_path / "registry").replacements()
    assert record.weaknesses == (
        "gates.commit=tests.task.test_weaker_gates.Lenient replaced a built-in gate",)


class Lenient(CommitGate):
    """The built-in one under another name."""
