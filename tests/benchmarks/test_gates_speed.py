"""One candidate through the gates, against the targets of the design.

AITER's layer norm with its whole oracle, and one dispatch of the fused mixture of experts, whose
kernel has 4,491 instructions.
"""

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


@pytest.fixture(scope="module")
def fmoe(tmp_path_factory: pytest.TempPathFactory) -> Session:
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        config = compose("config", overrides=[
            "kernel=aiter_fmoe_blockscale", "kernel.shapes=[{T: 33, D: 1024, I: 256, E: 3, K: 1}]",
            "kernel.held_out_shapes=[]", "oracle.families=[normal]",
            "oracle.extreme_families=[]",
        ])
    made = Session(config, Path(tmp_path_factory.mktemp("fmoe")))
    made.baseline.self_check(made.gates.tolerance)
    return made


def _between(session: Session, *lines: str) -> Assembly:
    """The original with lines inserted in front of a vector operation in its middle."""
    body = [line.text for line in session.assembly.body(session.symbol).lines if line.text]
    at = next(i for i in range(len(body) // 2, len(body)) if body[i].startswith("v_mul_f32"))
    return session.assembly.apply([Edit(session.symbol, at, at, lines, "benchmark")])


def test_all_gates_on_a_mixture_of_experts(benchmark: BenchmarkFixture, fmoe: Session) -> None:
    """Target: one second, median."""
    assert len(fmoe.baseline.dispatches) == 1
    assembly = _between(fmoe, "s_nop 0")
    _, verdicts = benchmark(fmoe.gates.judge, fmoe.baseline, fmoe.toolchain, assembly=assembly)
    assert all(v.passed for v in verdicts), verdicts[-1]


@pytest.mark.parametrize(("line", "code"), [
    ("v_nonsense v0", "assembler-error"), ("s_trap 2", "forbidden-opcode"),
    ("s_memtime s[20:21]", "forbidden-opcode"),
])
def test_rejection_of_a_mixture_of_experts(benchmark: BenchmarkFixture, fmoe: Session, line: str,
                                           code: str) -> None:
    """Less than what passes takes: the cheapest check comes first."""
    assembly = _between(fmoe, line)
    _, verdicts = benchmark(fmoe.gates.judge, fmoe.baseline, fmoe.toolchain, assembly=assembly)
    assert verdicts[-1].code == code


def test_build_and_static_gates_of_a_mixture_of_experts(
    benchmark: BenchmarkFixture, fmoe: Session
) -> None:
    """Target: G0 and G1 in 60 ms with one changed window; another one each time."""
    windows = iter(range(1 << 20))

    def judge() -> bool:
        assembly = _between(fmoe, f"s_nop {next(windows) % 8}", f"s_nop {next(windows) % 7}")
        trial = Trial(fmoe.baseline, fmoe.toolchain, assembly=assembly)
        return (fmoe.gates.assemble.judge(trial, 0).passed
                and fmoe.gates.static.judge(trial, 0).passed)

    assert benchmark(judge)


def _with_a_move(session: Session, number: int) -> Assembly:
    """The original with one of its products' sources moved to itself, another one each time."""
    body = [line.text for line in session.assembly.body(session.symbol).lines if line.text]
    products = [k for k in range(len(body) // 2, len(body)) if body[k].startswith("v_mul_f32_e32")]
    at = products[number % len(products)]
    source = body[at].rpartition(" ")[2]
    return session.assembly.apply([Edit(
        session.symbol, at, at, (f"v_mov_b32_e32 {source}, {source}",), "benchmark")])


def test_build_and_static_gates_where_values_are_looked_at(
    benchmark: BenchmarkFixture, fmoe: Session
) -> None:
    """Target: G0 and G1 in 60 ms with one changed window, of which values are followed anew."""
    moves = iter(range(1 << 20))
    verdicts = []

    def judge() -> None:
        trial = Trial(fmoe.baseline, fmoe.toolchain, assembly=_with_a_move(fmoe, next(moves)))
        verdicts.append(fmoe.gates.assemble.judge(trial, 0))
        verdicts.append(fmoe.gates.static.judge(trial, 0))

    benchmark(judge)
    assert all(v.passed for v in verdicts), {v.reason for v in verdicts}
