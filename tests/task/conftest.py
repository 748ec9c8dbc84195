"""Tasks composed and run in this process, and the command line in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hydra import compose, initialize_config_dir

import asmevo
from asmevo.__main__ import config_folder, quoted
from asmevo.codeobject.source import InstalledFile
from asmevo.config import register
from asmevo.report.result import Result
from asmevo.task.run import run_task

SCHEMA = json.loads((Path(asmevo.__file__).parent / "report" / "result.schema.json").read_text())
LAYER_NORM = "amd-aiter:aiter_meta/hsa/gfx942/layer_norm.co"

RunTask = Callable[..., Result]
CommandLine = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> RunTask:
    """Runs a task with these overrides; its folder is ``tmp_path/run``, its result checked."""

    def run_overridden(*overrides: str) -> Result:
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        register()
        with initialize_config_dir(config_folder(), version_base="1.3"):
            config = compose("config", overrides=quoted(
                [*overrides, f"registry.path={tmp_path}/registry"]))
        try:
            return run_task(config, folder)
        finally:
            jsonschema.validate(json.loads((folder / "result.json").read_text()), SCHEMA)

    return run_overridden


@pytest.fixture
def command_line(tmp_path: Path) -> CommandLine:
    """Runs ``python -m asmevo`` in ``tmp_path``."""

    def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "200",
                       "PYTHONPATH": str(Path(asmevo.__file__).parent.parent)}
        return subprocess.run(
            [sys.executable, "-m", "asmevo", *arguments], cwd=tmp_path, env=environment,
            capture_output=True, text=True, timeout=300, check=False)

    return run_command


@pytest.fixture
def read_result(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    """The one ``result.json`` that the command line left, checked."""

    def read() -> dict[str, Any]:
        (path,) = tmp_path.glob("runs/**/result.json")
        result: dict[str, Any] = json.loads(path.read_text())
        jsonschema.validate(result, SCHEMA)
        return result

    return read


@pytest.fixture(scope="session")
def layer_norm_bytes() -> bytes:
    return InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read()
