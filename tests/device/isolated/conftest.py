"""An object to load, whatever a scripted device makes of it."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from asmevo.codeobject.container import CodeObject


@pytest.fixture(scope="session")
def layer_norm() -> CodeObject:
    distribution = importlib.metadata.distribution("amd-aiter")
    path = distribution.locate_file("aiter_meta/hsa/gfx942/layer_norm.co")
    return CodeObject.parse(Path(str(path)).read_bytes())
