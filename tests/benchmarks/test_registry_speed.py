"""Registry operations with 10,000 candidates in place.

Targets: put of a 64 KiB object <= 5 ms, get <= 2 ms. Run with ``pytest --benchmark-only
--benchmark-enable tests/benchmarks/test_registry_speed.py``.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from sqlmodel import Session

from asmevo.codeobject.target import Target
from asmevo.registry.models import CandidateRow, CodeObjectRow
from asmevo.registry.registry import Registry

if TYPE_CHECKING:
    from asmevo.codeobject.container import CodeObject

ROWS = 10_000
SIZE = 1 << 16


@dataclass(frozen=True)
class Opaque:
    """What the registry reads of a code object, around bytes that do not compress away."""

    data: bytes
    sha256: str
    target: Target = field(default_factory=lambda: Target("gfx942"))
    kernels: tuple[Any, ...] = ()


def opaque() -> CodeObject:
    # Half random, half repeated: about as compressible as machine code.
    data = b"".join(os.urandom(4) + b"\x00\x00\x80\xbf" for _ in range(SIZE // 8))
    return cast("CodeObject", Opaque(data, hashlib.sha256(data).hexdigest()))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    registry = Registry(tmp_path_factory.mktemp("registry"))
    for number in range(256):  # ten thousand blobs have made every one of these
        (registry.path / "blobs" / f"{number:02x}").mkdir(parents=True)
    original = opaque()
    registry.record_original(original, "benchmark")
    run_id = registry.start_run(task="t", config="", seed=0, toolchain={}, device="d",
                                device_source="modelled")
    with registry._database.write() as session:
        _fill(session, run_id, original.sha256)
    return registry


def _fill(session: Session, run_id: str, original: str) -> None:
    session.add_all(CodeObjectRow(sha256=f"{n:064x}", isa="gfx942", size=SIZE, kernels=[],
                                  source="benchmark") for n in range(ROWS))
    session.flush()
    session.add_all(CandidateRow(
        id=f"c{n}", run_id=run_id, original_sha256=original, kernel="k", edits=[], rule="r",
        object_sha256=f"{n:064x}", direction="d", rationale="", worker=0, status="rejected")
        for n in range(ROWS))


def test_put(benchmark: Any, registry: Registry) -> None:
    objects = [opaque() for _ in range(60)]
    numbers = itertools.count()
    benchmark.pedantic(lambda: registry.record_original(objects[next(numbers)], "benchmark"),
                       rounds=50, warmup_rounds=5)


def test_get(benchmark: Any, registry: Registry) -> None:
    stored = opaque()
    registry.record_original(stored, "benchmark")

    def get() -> bytes:
        assert registry.code_object(stored.sha256) is not None
        return registry.load_object(stored.sha256)

    assert benchmark(get) == stored.data


def test_list(benchmark: Any, registry: Registry) -> None:
    assert benchmark(registry.replacements) == ()


def test_open(benchmark: Any, registry: Registry) -> None:
    def open_and_read(path: Path) -> None:
        fresh = Registry(path)
        fresh.code_object("0" * 64)
        fresh.close()

    benchmark(open_and_read, registry.path)
