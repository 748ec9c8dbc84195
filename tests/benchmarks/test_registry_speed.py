"""Registry operations in SQLite and on a PostgreSQL server of this machine.

Targets: with 10,000 candidates in place put of a 64 KiB object <= 5 ms and get <= 2 ms; a page of
100,000 replacements, with filters, <= 100 ms. Run with ``pytest -o addopts=--import-mode=importlib
--benchmark-only tests/benchmarks/test_registry_speed.py``.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from sqlmodel import Session

from asmevo.codeobject.target import Target
from asmevo.registry.database.models import (
    CandidateRow,
    CodeObjectRow,
    JudgementRow,
    ReplacementRow,
    SecondTimingRow,
    Table,
    now,
)
from asmevo.registry.records import ReplacementStatus
from asmevo.registry.registry import Registry
from asmevo.registry.replacement.selection import Order, Selection
from tests.registry.conftest import STRICT
from tests.registry.postgresql import Server, running_server

if TYPE_CHECKING:
    from asmevo.codeobject.container import CodeObject

ROWS = 10_000
REPLACEMENTS = 100_000
ORIGINALS = 1_000
PAGE = 100
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


def digest(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server("fsync=on", "synchronous_commit=on", "full_page_writes=on") as server:
        yield server


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    server: Server = request.getfixturevalue("server")
    return server.url(server.new_database())


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, url: str | None) -> Iterator[Registry]:
    registry = Registry(tmp_path_factory.mktemp("registry"), url)
    for number in range(256):  # ten thousand blobs have made every one of these
        (registry.path / "blobs" / f"{number:02x}").mkdir(parents=True)
    original = opaque()
    registry.record_original(original, "benchmark")
    run_id = start(registry)
    with registry._database.write() as session:
        add_candidates(session, run_id, [original.sha256] * ROWS)
    yield registry
    registry.close()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, url: str | None,
         request: pytest.FixtureRequest) -> Iterator[Registry]:
    """A registry with 100,000 replacements of 1,000 originals."""
    if url is not None:
        server: Server = request.getfixturevalue("server")
        url = server.url(server.new_database())
    registry = Registry(tmp_path_factory.mktemp("full"), url)
    run_id = start(registry)
    choose = random.Random(1)
    numbers = [choose.randrange(ORIGINALS) for _ in range(REPLACEMENTS)]
    with registry._database.write() as session:
        insert(session, CodeObjectRow, ({"sha256": digest(n), "isa": "gfx942", "size": SIZE,
                                         "kernels": [], "source": "benchmark", "created": now()}
                                        for n in range(ORIGINALS)))
        add_candidates(session, run_id, [digest(n) for n in numbers])
        insert(session, ReplacementRow, (
            {"original_sha256": digest(n), "kernel": f"_ZN7ck_tile6kernelILi{n % 200}EEEvv",
             "candidate_id": f"c{i}", "object_sha256": f"{i:064x}",
             "speedup": 1 + choose.expovariate(3), "evidence_complete": True, "created": now(),
             "timing_source": choose.choice(["measured", "modelled"]),
             "device": choose.choice(["gfx942:MI300X", "gfx90a:MI250", "emulator:gfx942"])}
            for i, n in enumerate(numbers)))
        insert(session, SecondTimingRow, (
            {"candidate_id": f"c{i}", "speedup": 1.2, "confirmed": True, "outcome": "pass",
             "code": "ok", "reason": "", "evidence": {}, "created": now()}
            for i in range(0, REPLACEMENTS, 2)))
        insert(session, JudgementRow, ({"candidate_id": f"c{i}", "data": STRICT.to_json()}
                                       for i in range(REPLACEMENTS)))
    if url is not None:
        server.execute("ANALYZE", url.partition("@/")[2].partition("?")[0])  # autovacuum is off
    yield registry
    registry.close()


def start(registry: Registry) -> str:
    return registry.start_run(task="t", config="", seed=0, toolchain={}, device="d",
                              device_source="modelled")


def add_candidates(session: Session, run_id: str, originals: list[str]) -> None:
    insert(session, CodeObjectRow, ({"sha256": f"{n:064x}", "isa": "gfx942", "size": SIZE,
                                     "kernels": [], "source": "benchmark", "created": now()}
                                    for n in range(len(originals))))
    insert(session, CandidateRow, (
        {"id": f"c{n}", "run_id": run_id, "original_sha256": original, "kernel": "k",
         "edits": [{"line": 1, "text": "s_nop 0"}], "rule": "r", "object_sha256": f"{n:064x}",
         "direction": "d", "rationale": "a reason of some words", "worker": 0,
         "status": "committed", "created": now()} for n, original in enumerate(originals)))


def insert(session: Session, model: type[Table], rows: Iterator[dict[str, Any]]) -> None:
    """Past the digests, which take longer than all the rest and do not matter here."""
    session.connection().execute(Table.metadata.tables[str(model.__tablename__)].insert(),
                                 list(rows))


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


def test_list_all(benchmark: Any, full: Registry) -> None:
    """For comparison: what a page avoids."""
    assert len(benchmark.pedantic(full.replacements, rounds=2)) == REPLACEMENTS


def test_find_one_to_pull(benchmark: Any, full: Registry) -> None:
    assert benchmark(lambda: full.replacements(original_sha256=digest(5)))


def test_open(benchmark: Any, registry: Registry, url: str | None) -> None:
    def open_and_read(path: Path) -> None:
        fresh = Registry(path, url)
        fresh.code_object("0" * 64)
        fresh.close()

    benchmark(open_and_read, registry.path)


SELECTIONS: dict[str, Selection] = {
    "nothing": Selection(limit=PAGE),
    "original": Selection(original=digest(5)[:12], limit=PAGE),
    "part-of-kernel": Selection(kernel="kernelili7eeev", limit=PAGE),
    "unknown-kernel": Selection(kernel="flash", limit=PAGE),
    "device": Selection(device="mi300x", limit=PAGE),
    "confirmed": Selection(status=ReplacementStatus.CONFIRMED, limit=PAGE),
    "weaker": Selection(status=ReplacementStatus.WEAKER, limit=PAGE),
    "fastest": Selection(order=Order.SPEEDUP, limit=PAGE),
    "newest": Selection(order=Order.DATE, limit=PAGE),
    "all-of-them": Selection(
        original=digest(5)[:12], kernel="kernelili5eeev", device="mi300x", source="measured",
        status=ReplacementStatus.CONFIRMED, min_speedup=1.2,
        since=datetime(2026, 1, 1, tzinfo=UTC), order=Order.SPEEDUP, limit=PAGE),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_select(benchmark: Any, full: Registry, name: str) -> None:
    """``asmevo-registry list``: at most 100 ms, the number of those left out included."""
    found = benchmark(lambda: full.catalog.select(SELECTIONS[name]))
    assert len(found.records) <= PAGE
    assert bool(found.records) == (name not in ("unknown-kernel", "weaker"))
