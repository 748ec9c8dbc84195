"""One candidate of AITER's layer norm through the gates, against the targets of the design."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from pytest_benchmark.fixture import BenchmarkFixture

from asmevo.__main__ import config_folder
from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.config import register
from asmevo.gates.trial import Trial
from asmevo.task.session import Session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        config = compose("config")
    made = Session(config, Path(tmp_path_factory.mktemp("run")))
    made.baseline.self_check(made.gates.tolerance)
    return made


@pytest.fixture(scope="module")
def candidate(session: Session) -> Assembly:
    """The original without one of its moves to itself."""
    lines = [line.text for line in session.assembly.body(session.symbol).lines if line.text]
    at = lines.index("s_mov_b32 s2, s2")
    return session.assembly.apply([Edit(session.symbol, at, at + 1, (), "move to itself")])


def test_all_gates(benchmark: BenchmarkFixture, session: Session, candidate: Assembly) -> None:
    """Target: one second, median."""
    _, verdicts = benchmark(
        session.gates.judge, session.baseline, session.toolchain, assembly=candidate
    )
    assert all(v.passed for v in verdicts)
    benchmark.extra_info["dispatches"] = len(session.baseline.dispatches)


def test_build_and_static_gates(
    benchmark: BenchmarkFixture, session: Session, candidate: Assembly
) -> None:
    """Target: G0 and G1 in 60 ms."""

    def judge() -> bool:
        trial = Trial(session.baseline, session.toolchain, assembly=candidate)
        return (
            session.gates.assemble.judge(trial, 0).passed
            and session.gates.static.judge(trial, 0).passed
        )

    assert benchmark(judge)
