"""SIGKILL at random moments: whatever had returned is there, and nothing else is half there."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.registry.faults.conftest import Show, Site


@pytest.mark.parametrize("kills", [20, pytest.param(400, marks=pytest.mark.faults)])
def test_killed_writers(site: Site, kills: int, show: Show) -> None:
    site.run("kill", kills, 8, timeout_s=60 + kills)
    victims = list(site.reports.glob("victim-*"))
    assert len(victims) == kills
    assert site.check() >= kills
    last = Counter(report.read_bytes().splitlines()[-1].split(b'"')[3] for report in victims)
    show("last_write_before_the_kill", dict(last))
    assert len(last) >= min(4, kills), "the kills hit too few kinds of writes"
