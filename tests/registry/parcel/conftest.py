"""A populated registry, what it sends, and another to take that to."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from asmevo.registry.parcel.export import export
from asmevo.registry.registry import Registry
from asmevo.registry.signing.keys import load_signing_key
from tests.registry.populated import Populated


@pytest.fixture(scope="session")
def parcel(pristine: Populated) -> bytes:
    """All replacements, signed."""
    out = io.BytesIO()
    export(pristine.registry, out, key=load_signing_key(pristine.key))
    pristine.registry.close()
    return out.getvalue()


@pytest.fixture
def populated(pristine: Populated, tmp_path: Path) -> Iterator[Populated]:
    """A copy of the registry that sent the parcel."""
    shutil.copytree(pristine.registry.path, tmp_path / "source")
    registry = Registry(tmp_path / "source", busy_timeout_s=5, signing_key=pristine.key)
    yield replace(pristine, registry=registry)
    registry.close()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Registry]:
    registry = Registry(tmp_path / "target", busy_timeout_s=5)
    yield registry
    registry.close()
