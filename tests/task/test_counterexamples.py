"""Inputs that exposed a wrong candidate judge later runs of the same kernel."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.gates.verdict import Gate
from asmevo.propose.proposal import Direction, Evidence, Proposal
from asmevo.registry.records import CaptureReason
from asmevo.registry.registry import Registry
from asmevo.registry.rows import captures
from asmevo.report.result import Result, Status
from asmevo.task.counterexamples import Keeper
from asmevo.task.run import run_task
from asmevo.task.session import Session
from tests.cheats.conftest import configured

# Visible inputs are near 1, where a variance dwarfs the epsilon that is added to it; held-out ones
# are tiny, and it is all that counts.
TINY_HELD_OUT = (
    "kernel=aiter_layer_norm", "kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[{M:4}]",
    "oracle.families=[normal]", "oracle.held_out_families=[tiny]", "oracle.extreme_families=[]")
NO_TINY = ("kernel=aiter_layer_norm", "kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[]",
           "oracle.families=[normal]", "oracle.held_out_families=[normal]",
           "oracle.extreme_families=[]")
EPSILON = "v_add_f32_e64 v14, v14, s28"
HALF = "v_fma_f32 v14, s28, 0.5, v14"


class HalvesEpsilon:
    """Proposes the one wrong edit."""

    def __init__(self, **settings: object) -> None:
        """Those of the proposer that it stands for are of no use to it."""

    def propose(self, evidence: Evidence) -> Iterator[Proposal]:
        at = evidence.lines.index(EPSILON)
        yield Proposal((Edit(evidence.kernel, at, at + 1, (HALF,), "half of epsilon"),),
                       "halves-epsilon", Direction.SIMPLIFICATION, "half is enough")


PROPOSER = "proposer._target_=tests.task.test_counterexamples.HalvesEpsilon"


def wrong(session: Session) -> tuple[str, str]:
    """Last gate and code for the candidate that adds half of epsilon."""
    lines = [line.text for line in session.assembly.body(session.symbol).lines if line.text]
    at = lines.index(EPSILON)
    edit = Edit(session.symbol, at, at + 1, (HALF,), "half of epsilon")
    _, verdicts = session.gates.judge(session.baseline, session.toolchain,
                                      assembly=session.assembly.apply([edit]))
    return verdicts[-1].gate.value, verdicts[-1].code


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """A run in which a held-out input exposed the candidate, and the registry that it left."""
    folder = tmp_path_factory.mktemp("first")
    session = configured(folder, "task=optimize", *TINY_HELD_OUT, PROPOSER)
    return run_task(session.config, folder), folder / "registry"


@pytest.fixture
def taught(first_run: tuple[Result, Path], tmp_path: Path) -> Path:
    """A folder with a registry that knows the counterexample."""
    shutil.copytree(first_run[1], tmp_path / "registry")
    return tmp_path


def test_a_held_out_input_is_kept(first_run: tuple[Result, Path]) -> None:
    result, _ = first_run
    assert (result.status, result.attempts) == (Status.NONE, 1)
    assert result.verdicts["G2"]["fail"] == 1
    assert result.counterexamples == {"used": [], "kept": ["M4-tiny"], "refused": []}


def test_it_judges_later_runs(run: Callable[..., Result], taught: Path, tmp_path: Path) -> None:
    """With no tiny input of its own, a later run would have believed the candidate."""
    session = configured(tmp_path / "no-registry", *NO_TINY)
    assert wrong(session)[0] == Gate.G3.value  # passes every comparison
    session = configured(taught, *NO_TINY)
    assert wrong(session) == (Gate.G2.value, "held-out")
    dispatch = session.baseline.dispatches[-1]
    assert dispatch.held_out
    assert session.baseline.timed_dispatches == (0,)

    later = run("task=optimize", *NO_TINY, PROPOSER)
    assert later.verdicts["G2"]["fail"] == 1
    # What exposed it is known already, under the name that it has now.
    assert later.counterexamples == {"used": [dispatch.name], "kept": [], "refused": []}


def test_what_the_oracle_has_is_not_run_twice(run: Callable[..., Result], taught: Path) -> None:
    result = run("task=optimize", *TINY_HELD_OUT, PROPOSER)
    assert result.counterexamples == {"used": [], "kept": [], "refused": []}
    session = configured(taught, *TINY_HELD_OUT)
    assert [d.name for d in session.baseline.dispatches] == ["M2-normal", "M4-tiny"]
    assert len(session.counterexamples) == 1


def test_they_can_be_left_out(taught: Path) -> None:
    """A run that shall not depend on earlier ones, or be compared with another's."""
    session = configured(taught, *NO_TINY, "counterexamples=false")
    assert len(session.baseline.dispatches) == 1
    session = configured(taught, *NO_TINY)
    assert len(session.baseline.dispatches) == 2


def test_another_kernel_has_its_own(taught: Path) -> None:
    session = configured(taught, "kernel=aiter_topksoftmax")
    assert session.counterexamples == ()


def test_workers_judge_by_the_same(taught: Path) -> None:
    """A worker that starts late does not see what the registry has got since."""
    session = configured(taught, *NO_TINY)
    workbench = session.workbench_factory()()
    assert [d.sha256 for d in workbench.baseline.dispatches] == [
        d.sha256 for d in session.baseline.dispatches]
    assert len(workbench.baseline.dispatches) == 2
    earlier = Session(session.config, taught, counterexamples=())
    assert len(earlier.workbench_factory()().baseline.dispatches) == 1


@pytest.mark.parametrize("limit", ["number", "bytes"])
def test_no_more_are_kept_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                 limit: str) -> None:
    overrides = ("kernel=aiter_layer_norm", "kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[]",
                 "oracle.families=[normal,tiny,wide,boundary]", "oracle.extreme_families=[]")
    session = configured(tmp_path, *overrides)
    registry: Registry = session.registry
    registry.record_original(session.code_object, "test")
    dispatches = {d.sha256: d for d in session.baseline.dispatches}
    size = sum(len(r.data) for r in session.baseline.dispatches[0].regions)
    if limit == "number":
        monkeypatch.setattr(captures, "MOST_COUNTEREXAMPLES", 2)
    else:
        monkeypatch.setattr(captures, "MOST_COUNTEREXAMPLE_BYTES", 3 * size - 1)
    keeper = Keeper(registry, session.baseline, dispatches)
    for _ in range(2):
        for sha256 in dispatches:
            keeper.keep(sha256)
    assert keeper.kept == ["M2-normal", "M2-tiny"]
    assert keeper.refused == ["M2-wide", "M2-boundary"]
    keeper.keep("0" * 64)
    kept = registry.captures(session.code_object.sha256, session.symbol)
    assert [record.reason for record in kept] == [CaptureReason.COUNTEREXAMPLE] * 2
    assert all(record.held_out and record.size == size for record in kept)


def test_what_cannot_be_recorded_costs_nothing(tmp_path: Path) -> None:
    session = configured(tmp_path, *TINY_HELD_OUT)
    session.registry.record_original(session.code_object, "test")
    broken = replace(session.baseline.dispatches[0], grid=(1 << 20, 1, 1))
    keeper = Keeper(session.registry, session.baseline, {"1" * 64: broken})
    keeper.keep("1" * 64)
    assert (keeper.kept, keeper.refused) == ([], [broken.name])
