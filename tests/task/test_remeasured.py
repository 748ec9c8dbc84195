"""A winner that a second look does not confirm is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.registry import Registry
from asmevo.report.result import Result, Status
from asmevo.task import optimize


@pytest.mark.parametrize(("again", "status"), [
    (1.01, Status.COMMITTED), (1.0, Status.NONE), (None, Status.NONE)])
def test_the_second_look_decides(
        run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture, again: float | None, status: Status) -> None:
    outcome = Outcome.MISSING if again is None else Outcome.PASS
    monkeypatch.setattr(optimize, "measured_again", lambda *_: (
        again, Verdict(Gate.G3, outcome, "ok", "as told")))
    result = run("task=optimize", "kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[]",
                 "oracle.families=[normal]", "search.budget.attempts=40")
    assert result.commits > 0
    assert (result.status, result.speedup_again) == (status, again)
    assert ("was not faster" in caplog.text) is (status is Status.NONE)
    registry, original = Registry(str(result.registry)), str(result.original_sha256)
    best = next(r for r in registry.replacements(original_sha256=original)
                if r.object_sha256 == result.replacement_sha256)
    assert (best.speedup_again, best.withdrawn) == (again, status is Status.NONE)
