"""KernelBench's operators on the emulator, against the reference that each YAML names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

import asmevo
from asmevo.__main__ import config_folder
from asmevo.config import register
from asmevo.operation.declared import OperationError
from asmevo.operation.kernelbench import Operator
from asmevo.report.result import Status
from asmevo.task.run import run_task
from asmevo.task.session import Session

NAMES = sorted(path.stem for path in Path(config_folder(), "kernel").glob("kb_*.yaml"))

Composed = Callable[..., DictConfig]


@pytest.fixture
def composed(tmp_path: Path) -> Composed:
    def compose_with(*overrides: str) -> DictConfig:
        register()
        with initialize_config_dir(config_folder(), version_base="1.3"):
            return compose("config", overrides=[f"registry.path={tmp_path}/registry", *overrides])

    return compose_with


def test_the_suite_is_whole(composed: Composed) -> None:
    folder = Path(asmevo.__file__).parent / "kernelbench"
    levels = [{f"kb_{path.stem}" for path in folder.glob(f"level{level}/*.hip")}
              for level in (1, 2)]
    assert [len(level) for level in levels] == [15, 15]
    assert levels[0] | levels[1] == set(NAMES)
    suites = composed("experiment=kernelbench").task.suites
    assert [set(suites.level_1), set(suites.level_2)] == levels


@pytest.mark.parametrize("name", NAMES)
def test_operators_agree(name: str, composed: Composed, tmp_path: Path) -> None:
    """With the reference on every shape, and with themselves on everything that candidates are
    judged on; the sanitizer finds nothing in them, nor lack waits or hazards' nops."""
    config = composed("task=run", f"kernel={name}", "task.sanitize=true")
    result = run_task(config, tmp_path)
    assert result.status is Status.AGREES, result.error
    details: Any = result.details
    for launch in details["launches"]:
        judged = [buffer["name"] for buffer in launch["buffers"] if buffer["within"] is not None]
        assert judged == ["out"]
        assert launch["sanitizer"]["summary"] == []
    session = Session(config, tmp_path)
    session.baseline.self_check(session.gates.tolerance)
    # The compiler leaves registers undefined on paths that never read them.
    assert {violation.kind for violation in session.baseline.violations} <= {"undefined-read"}


@pytest.mark.parametrize(("name", "operator"), [
    ("kb_softmax", "cumsum"), ("kb_layer_norm", "softmax"), ("kb_conv2d_mish", "conv2d"),
    ("kb_gemm_bias_relu", "matmul_gelu_softmax"),
])
def test_another_operation_is_told_apart(
    name: str, operator: str, composed: Composed, tmp_path: Path,
) -> None:
    config = composed("task=run", f"kernel={name}", f"kernel.operation.name={operator}")
    assert run_task(config, tmp_path).status is Status.DISAGREES


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(OperationError, match=r"no operator 'gelo' \(there are: avg_pool2d, "):
        Operator("gelo")
