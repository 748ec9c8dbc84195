"""A populated registry, and others to take its replacements to."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.registry.parcel.export import export
from asmevo.registry.registry import Registry
from asmevo.registry.signing import load_signing_key
from tests.registry.populated import Populated, populate


@pytest.fixture
def populated(tmp_path: Path, original: CodeObject,
              variant: Callable[[int], CodeObject]) -> Iterator[Populated]:
    made = populate(tmp_path / "source", original, variant, tmp_path / "key")
    yield made
    made.registry.close()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Registry]:
    registry = Registry(tmp_path / "target", busy_timeout_s=5)
    yield registry
    registry.close()


@pytest.fixture
def parcel(populated: Populated) -> bytes:
    """All replacements, signed."""
    out = io.BytesIO()
    export(populated.registry, out, key=load_signing_key(populated.key))
    return out.getvalue()
