"""gc over a registry of 10,000 rejected candidates with a text each and 5,000 forgotten blobs.

Run with ``pytest -o addopts=--import-mode=importlib --benchmark-only
tests/benchmarks/test_gc_speed.py``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from asmevo.registry.blobs.format import blob_name, compressed
from asmevo.registry.database.models import CandidateRow, CodeObjectRow
from asmevo.registry.records import RunStatus
from asmevo.registry.registry import Registry
from asmevo.registry.retention.retention import Retention

CANDIDATES, FORGOTTEN = 10_000, 5_000
NOTHING = Retention(rejected_days=None, grace_s=1e9)
FORGOTTEN_ONLY = Retention(rejected_days=None, grace_s=0)
ALL = Retention(rejected_days=0, grace_s=0)


def put_fast(registry: Registry, text: str) -> str:
    """As the registry puts it, but without fsync: it would take minutes."""
    data = text.encode()
    sha256 = hashlib.sha256(data).hexdigest()
    path = registry.path / "blobs" / blob_name(sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compressed(data))
    return sha256


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    registry = Registry(tmp_path)
    run_id = registry.start_run(task="t", config="", seed=0, toolchain={}, device="d",
                                device_source="modelled")
    original = put_fast(registry, "original")
    texts = [put_fast(registry, f"; candidate {n}\n" * 100) for n in range(CANDIDATES)]
    for number in range(FORGOTTEN):
        put_fast(registry, f"forgotten {number}")
    with registry._database.write() as session:
        session.add(CodeObjectRow(sha256=original, isa="gfx942", size=8, kernels=[], source="b"))
        session.flush()
        session.add_all(CandidateRow(
            id=f"c{n:05}", run_id=run_id, original_sha256=original, kernel="k", edits=[],
            rule="r", direction="d", rationale="", worker=0, status="rejected",
            assembly_sha256=text, parent_id=f"c{n - 1:05}" if n % 10 else None)
            for n, text in enumerate(texts))
    registry.finish_run(run_id, RunStatus.COMPLETED)
    return registry


def test_nothing_to_do(benchmark: Any, registry: Registry) -> None:
    done = benchmark.pedantic(lambda: registry.collect(NOTHING, apply=True), rounds=5)
    assert done.blobs == 0


def test_forgotten_blobs(benchmark: Any, registry: Registry) -> None:
    done = benchmark.pedantic(lambda: registry.collect(FORGOTTEN_ONLY, apply=True), rounds=1)
    assert done.orphans == FORGOTTEN


def test_dry_run(benchmark: Any, registry: Registry) -> None:
    done = benchmark.pedantic(lambda: registry.collect(ALL), rounds=3)
    assert done.candidates == CANDIDATES


def test_everything(benchmark: Any, registry: Registry) -> None:
    done = benchmark.pedantic(lambda: registry.collect(ALL, apply=True), rounds=1)
    assert (done.candidates, done.blobs) == (CANDIDATES, CANDIDATES + FORGOTTEN)
