"""Real code objects and the toolchain, shared by these tests."""

from __future__ import annotations

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.toolchain import Toolchain, ZigToolchain


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return ZigToolchain()


@pytest.fixture(scope="session")
def layer_norm_bytes() -> bytes:
    return InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read()


@pytest.fixture(scope="session")
def layer_norm(layer_norm_bytes: bytes) -> CodeObject:
    return CodeObject.parse(layer_norm_bytes)
