"""SIGKILL at random moments: whatever had returned is there, and nothing else is half there."""

from __future__ import annotations

from collections import Counter

import pytest

from asmevo.registry.retention.retention import Retention
from tests.registry.faults.conftest import Show, Site


@pytest.mark.parametrize("kills", [12, pytest.param(400, marks=pytest.mark.faults)])
def test_killed_writers(site: Site, kills: int, show: Show) -> None:
    site.run("kill", kills, 8, 0, timeout_s=60 + kills)
    victims = list(site.reports.glob("victim-*"))
    assert len(victims) == kills
    assert site.check() >= kills
    last = Counter(report.read_bytes().splitlines()[-1].split(b'"')[3] for report in victims)
    show("last_write_before_the_kill", dict(last))
    assert len(last) >= min(3, kills), "the kills hit too few kinds of writes"


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.faults)])
def test_killed_collectors(site: Site, kills: int) -> None:
    """Rows and blobs that were to go may stay; what stays is whole, and goes the next time."""
    site.run("kill", kills, 9, 1, timeout_s=60 + 3 * kills)
    assert site.check(collected=True) >= kills
    registry = site.registry
    registry.collect(Retention(rejected_days=0, grace_s=0), apply=True)
    assert site.check(collected=True) >= kills
    left = registry.collect(Retention(rejected_days=0, grace_s=0))
    assert (left.candidates, left.blobs, left.orphans) == (0, 0, 0)
