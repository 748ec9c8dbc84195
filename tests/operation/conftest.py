"""Kernels run as ``task=run`` runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder, quoted
from asmevo.config import register
from asmevo.report.result import Result
from asmevo.task.run import run_task


@pytest.fixture
def run_kernel(tmp_path: Path) -> Callable[..., Result]:
    """Runs a kernel's dispatches for these shapes instead of its YAML's."""

    def run(name: str, shapes: tuple[str, ...], *overrides: str) -> Result:
        register()
        with initialize_config_dir(config_folder(), version_base="1.3"):
            config = compose("config", overrides=quoted([
                "task=run", f"kernel={name}", f"kernel.shapes=[{','.join(shapes)}]",
                "kernel.held_out_shapes=[]", f"registry.path={tmp_path}/registry", *overrides]))
        return run_task(config, tmp_path)

    return run


def accuracies(result: Result) -> Mapping[str, Mapping[str, float]]:
    """Of the buffers of the last dispatch, by name."""
    details: Any = result.details
    return {buffer["name"]: buffer["accuracy"] for buffer in details["launches"][-1]["buffers"]
            if buffer["accuracy"] is not None}
