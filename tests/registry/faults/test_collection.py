"""gc all the time beside those who write: nothing that anybody relies on is ever removed."""

from __future__ import annotations

import pytest

from tests.registry.faults.conftest import Show, Site


@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.faults)])
def test_collecting_beside_writers(site: Site, seconds: int, show: Show) -> None:
    """No grace at all: every rejected candidate writes blobs that gc is just about to delete."""
    site.run("collect", seconds, 4, 2, timeout_s=seconds + 120)
    [collected] = site.summaries("collect")
    for name, value in collected.items():
        show(name, value)
    show("writes", sum(s["count"] for s in site.summaries("write")))
    assert collected["times"] >= 3
    assert collected["blobs"] >= 1
    assert site.check(collected=True) >= sum(s["count"] for s in site.summaries("write"))
