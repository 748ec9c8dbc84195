"""AITER's layer norm on the emulator, with one small visible and one small held-out dispatch."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder
from asmevo.config import register
from asmevo.task.session import Session


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        config = compose("config", overrides=[
            "kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[{M:4}]",
            "oracle.families=[normal,tiny]", "oracle.held_out_families=[wide]",
            f"registry.path={tmp_path_factory.mktemp('registry')}",
        ])
    return Session(config, Path(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="session")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """AITER's softmax with top-k where `renormalize` is always 0, so half of it never runs."""
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        config = compose("config", overrides=[
            "kernel=aiter_topksoftmax", "kernel.shapes=[{T:4,S:8}]", "kernel.held_out_shapes=[]",
            "oracle.families=[normal]", "kernel.scalars.3.value=0",
            f"registry.path={tmp_path_factory.mktemp('registry')}",
        ])
    return Session(config, Path(tmp_path_factory.mktemp("run")))
