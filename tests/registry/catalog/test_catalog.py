"""Lookups mean the same in every database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from asmevo.device.device import TimingSource
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.catalog.identities import Kind
from asmevo.registry.command.line import main
from asmevo.registry.records import CandidateStatus, ReplacementStatus
from asmevo.registry.replacement.selection import Order, Selection
from tests.registry.conftest import STRICT
from tests.registry.postgresql import PASSWORD

if TYPE_CHECKING:
    from tests.registry.conftest import Scene
    from tests.registry.postgresql import Server

BACKENDS = ("sqlite", "postgresql")


@pytest.fixture
def stocked(scene: Scene) -> Scene:
    """Replacements of every status; one is modelled, one candidate is wrong."""
    fine, slow = (Verdict(Gate.G3, outcome, "code", "reason")
                  for outcome in (Outcome.PASS, Outcome.FAIL))
    scene.commit("fresh", number=1, speedup=1.4)
    scene.commit("again", number=2, speedup=1.3)
    scene.registry.record_second_timing("again", 1.29, fine, confirmed=True)
    scene.commit("gone", number=3, speedup=1.2)
    scene.registry.record_second_timing("gone", 0.9, slow, confirmed=False)
    scene.commit("weak", number=4, speedup=1.6, judged=replace(STRICT, extra_ops=("s_sleep",)))
    scene.commit("unknown", number=5, speedup=1.1, judged=None, source=TimingSource.MODELLED)
    scene.registry.record_candidate(scene.candidate(
        "wrong", gates=(Gate.G0, Gate.G1, Gate.G2), outcome=Outcome.FAIL,
        status=CandidateStatus.REJECTED))
    return scene


def chosen(scene: Scene, selection: Selection) -> list[str]:
    found = scene.registry.catalog.select(selection)
    assert found.total >= len(found.records)
    return [record.candidate_id for record in found.records]


@pytest.mark.parametrize("most", [10_000, 0])
def test_statuses(stocked: Scene, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asmevo.registry.replacement.selection._MOST_KINDS", most)
    for status, names in (("committed", ["fresh"]), ("confirmed", ["again"]),
                          ("withdrawn", ["gone"]), ("weaker", ["weak", "unknown"])):
        selection = Selection(status=ReplacementStatus(status))
        found = stocked.registry.catalog.select(selection)
        assert {r.status for r in found.records} == {status}
        assert chosen(stocked, selection) == names


def test_filters_and_orders(stocked: Scene) -> None:
    best = ["weak", "fresh", "again", "gone", "unknown"]
    for order in (Order.ORIGINAL, Order.KERNEL, Order.SPEEDUP):
        assert chosen(stocked, Selection(order=order)) == best
    assert chosen(stocked, Selection(order=Order.DATE))[0] == "unknown"
    assert chosen(stocked, Selection(source="modelled")) == ["unknown"]
    assert chosen(stocked, Selection(device="-MEAS")) == best[:4]
    assert chosen(stocked, Selection(kernel="Norm_KERNEL")) == best
    assert chosen(stocked, Selection(kernel="norm%kernel")) == []
    assert chosen(stocked, Selection(min_speedup=1.3)) == best[:3]
    assert chosen(stocked, Selection(original=stocked.original.sha256[:7])) == best
    assert chosen(stocked, Selection(original="0" * 7)) == []
    soon = datetime.now(UTC) + timedelta(hours=1)
    assert chosen(stocked, Selection(since=soon)) == []
    assert chosen(stocked, Selection(since=soon - timedelta(hours=2))) == best
    page = stocked.registry.catalog.select(Selection(limit=2))
    assert (len(page.records), page.total) == (2, 5)


def test_identities(stocked: Scene) -> None:
    catalog = stocked.registry.catalog
    found = catalog.identities(stocked.original.sha256[:6].upper(), limit=5)
    assert [(i.kind, i.id) for i in found] == [(Kind.OBJECT, stocked.original.sha256)]
    assert [i.kind for i in catalog.identities("again", limit=5)] == [Kind.CANDIDATE]
    assert [i.kind for i in catalog.identities(stocked.run_id[:9], limit=5)] == [Kind.RUN]
    assert [i.kind for i in catalog.identities(stocked.dispatch.sha256, limit=5)] == [
        Kind.DISPATCH]
    assert catalog.identities("agai", limit=5) == ()
    assert catalog.identities("______", limit=5) == ()


def test_statistics(stocked: Scene) -> None:
    found = stocked.registry.statistics()
    assert found.counts["candidates"] == 6
    assert found.replacements == {
        "measured": {"withdrawn": 1, "weaker": 1, "confirmed": 1, "committed": 1},
        "modelled": {"withdrawn": 0, "weaker": 1, "confirmed": 0, "committed": 0}}
    assert [(g.gate, g.passed, g.failed) for g in found.gates] == [
        ("G0", 6, 0), ("G1", 6, 0), ("G2", 5, 1), ("G3", 5, 0), ("G4", 5, 0)]
    assert [(s.source, s.replacements, s.least, s.best) for s in found.speedups] == [
        ("measured", 4, 1.2, 1.6), ("modelled", 1, 1.1, 1.1)]
    [growth] = found.growth
    assert growth.period in (f"{datetime.now(UTC):%Y-%m-%d}",
                             f"{datetime.now(UTC) - timedelta(minutes=1):%Y-%m-%d}")
    assert (growth.objects, growth.candidates, growth.replacements) == (6, 6, 5)


def test_events_of_attempts(stocked: Scene) -> None:
    registry = stocked.registry
    registry.record_search(stocked.run_id, [
        {"number": 0, "kind": "started"},
        {"number": 1, "kind": "attempted", "candidate": "again", "proposer": "rules"}])
    again = registry.candidate("again")
    event = registry.catalog.attempt_event(again)
    assert event is not None
    assert event["proposer"] == "rules"
    assert registry.catalog.attempt_event(registry.candidate("weak")) is None
    assert registry.catalog.attempts_of(stocked.run_id) == {
        CandidateStatus.COMMITTED: 5, CandidateStatus.REJECTED: 1}
    assert [r.id for r in registry.runs(original_sha256=stocked.original.sha256)] == [
        stocked.run_id]
    assert registry.runs(original_sha256="0" * 64) == ()


def test_command_line(stocked: Scene, backend: str, request: pytest.FixtureRequest,
                      capsys: pytest.CaptureFixture[str]) -> None:
    """The same commands on a folder, and on the URL of a database with the blobs beside it."""
    folder = stocked.registry.path
    place = [str(folder)]
    if backend == "postgresql":
        server: Server = request.getfixturevalue("postgresql")
        assert server.shared is not None
        place = [server.url(server.shared), "--blobs", str(folder / "blobs")]
    for words in (["list", "--status", "weaker"], ["show", "again"], ["log", "again"],
                  ["show", stocked.original.sha256[:8]], ["stats"]):
        assert main([*words, "--registry", *place]) == 0, words
    out, err = capsys.readouterr()
    assert "content      verified" in out
    assert PASSWORD not in out + err
    assert main(["list", "--kernel", "none", "--registry", *place]) == 1
    out, err = capsys.readouterr()
    assert PASSWORD not in out + err
    assert len(out.splitlines()) == 1
