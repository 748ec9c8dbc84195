"""Many processes at one SQLite registry: nothing is lost, nothing is ever half there."""

from __future__ import annotations

import pytest

from tests.registry.faults.conftest import Show, Site

WRITERS = READERS = 8


@pytest.mark.parametrize("seconds", [5, pytest.param(60, marks=pytest.mark.faults)])
def test_writers_and_readers(site: Site, seconds: int, show: Show) -> None:
    site.run("storm", seconds, WRITERS, READERS, timeout_s=seconds + 120)
    written, read = site.summaries("write"), site.summaries("read")
    assert len(written) == WRITERS
    assert len(read) == READERS
    assert site.check() >= sum(s["count"] for s in written)
    assert all(s["count"] >= seconds / 5 for s in (*written, *read)), "somebody starved"
    for kind, summaries in (("writes", written), ("reads", read)):
        show(f"{kind}_per_s", sum(s["count"] for s in summaries) / seconds)
        for figure in ("median_ms", "p99_ms", "longest_ms"):
            show(f"{kind}_{figure}", max(s[figure] for s in summaries))
