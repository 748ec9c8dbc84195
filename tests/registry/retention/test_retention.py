"""Retention: what goes, what never does, and that whatever stays is whole."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from asmevo.device.device import TimingSource
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.blobs.store import BlobStore
from asmevo.registry.command.line import main
from asmevo.registry.database.models import Table
from asmevo.registry.delivery.offers import offers
from asmevo.registry.delivery.pull import pull
from asmevo.registry.errors import QuotaError, RegistryError
from asmevo.registry.records import CandidateRecord, CandidateStatus, RunStatus
from asmevo.registry.registry import Registry
from asmevo.registry.retention.retention import Collected, Retention
from asmevo.registry.run_lock import RunLock
from tests.dispatch.captured.conftest import make_capture
from tests.registry.conftest import STRICT, Scene
from tests.registry.faults.audit import audited

BOTH = pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
ALL = Retention(rejected_days=0, capture_bytes=0, grace_s=0)


def record(scene: Scene, name: str, number: int, *, parent: str | None = None,
           status: CandidateStatus = CandidateStatus.REJECTED) -> CandidateRecord:
    """A candidate of its own text and object."""
    outcome = Outcome.FAIL if status is CandidateStatus.REJECTED else Outcome.PASS
    return scene.registry.record_candidate(
        scene.candidate(name, parent=parent, status=status, outcome=outcome),
        assembly=f"; {name}\n", built=scene.variant(number))


def lineage(scene: Scene) -> set[str]:
    return {c.id for c in scene.registry.lineage(scene.run_id)}


def blobs(registry: Registry) -> set[str]:
    return {blob.name for blob in registry._blobs.list()}


def rows(registry: Registry) -> dict[str, int]:
    with registry._database.read() as session:
        return {table: session.connection().exec_driver_sql(
            f"SELECT count(*) FROM {table}").scalar_one() for table in Table.metadata.tables}


def problems(registry: Registry) -> list[str]:
    """An independent look at the files; there are none where a server keeps the rows."""
    return audited(registry.path) if (registry.path / "asmevo.db").exists() else []


def end(scene: Scene, status: RunStatus = RunStatus.COMPLETED) -> None:
    scene.registry.finish_run(scene.run_id, status)


@pytest.fixture
def family(scene: Scene) -> Scene:
    """A replacement made from a rejected candidate, and rejected ones beside and below it.

    One that was verified only has a rejected parent as well.
    """
    record(scene, "grandparent", 1)
    scene.registry.record_candidate(
        scene.candidate("child", parent="grandparent"), assembly="; child\n",
        built=scene.variant(2))
    scene.registry.commit_replacement("child", 1.25, STRICT)
    record(scene, "nephew", 3, parent="grandparent")
    record(scene, "grandnephew", 4, parent="nephew")
    record(scene, "error", 5, status=CandidateStatus.ERROR)
    record(scene, "other", 6)
    record(scene, "verified", 7, parent="other", status=CandidateStatus.VERIFIED)
    scene.registry.record_search(scene.run_id, [{"number": 0, "kind": "started"}])
    return scene


@BOTH
def test_evidence_stays_and_the_rest_goes(family: Scene) -> None:
    end(family)
    before = rows(family.registry)
    done = family.registry.collect(ALL, apply=True)
    assert lineage(family) == {"grandparent", "child", "other", "verified"}
    assert (done.runs, done.candidates, done.objects, done.events) == (1, 3, 3, 1)
    assert done.blobs == 6  # a text and an object each
    pulled = pull(family.registry, original=family.original.sha256, allow_weaker=True)
    assert pulled.data == family.variant(2).data
    assert pulled.statement_sha256
    for candidate in family.registry.lineage(family.run_id):
        assert family.registry.load_text(str(candidate.assembly_sha256))
        assert family.registry.load_object(str(candidate.object_sha256))
        assert (len(candidate.verdicts), len(candidate.timings)) == (7, 1)
    after = rows(family.registry)
    assert {table: before[table] - after[table] for table in before if after[table] != before[table]
            } == {"candidate": 3, "verdict": 21, "timing": 3, "code_object": 3, "search_event": 1}
    assert problems(family.registry) == []
    assert family.registry.collect(ALL, apply=True) == Collected(
        blob_bytes_kept=done.blob_bytes_kept)


@BOTH
def test_a_dry_run_says_what_would_go(family: Scene) -> None:
    end(family)
    kept = blobs(family.registry)
    counts = rows(family.registry)
    said = family.registry.collect(ALL)
    assert (blobs(family.registry), rows(family.registry)) == (kept, counts)
    assert said.candidates == 3
    assert family.registry.collect(ALL, apply=True) == said


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.INTERRUPTED])
def test_a_run_that_may_go_on_keeps_everything(family: Scene, status: RunStatus) -> None:
    end(family, status)
    before = rows(family.registry)
    assert family.registry.collect(ALL, apply=True).runs == 0
    assert rows(family.registry) == before


def test_a_run_that_somebody_is_at_keeps_everything(family: Scene) -> None:
    end(family)
    lock = RunLock(family.registry.path, family.run_id)
    lock.demand(family.run_id)
    before = rows(family.registry)
    assert family.registry.collect(ALL, apply=True).busy == [family.run_id]
    assert rows(family.registry) == before
    lock.release()
    assert family.registry.collect(ALL, apply=True).runs == 1


def test_recent_runs_keep_everything(family: Scene) -> None:
    end(family)
    before = rows(family.registry)
    for days in (1, None):
        retention = Retention(rejected_days=days, grace_s=0)
        assert family.registry.collect(retention, apply=True).runs == 0
    assert rows(family.registry) == before


@BOTH
def test_a_child_in_a_later_run_keeps_its_parent(family: Scene) -> None:
    end(family)
    later = family.registry.start_run(task="t", config="", seed=2, toolchain={}, device="d",
                                      device_source="modelled")
    for name, parent in (("heir", "grandnephew"), ("leaf", "error")):
        family.registry.record_candidate(replace(
            family.candidate(name, parent=parent, outcome=Outcome.FAIL,
                             status=CandidateStatus.REJECTED), run_id=later))
    family.registry.collect(ALL, apply=True)
    assert {"nephew", "grandnephew", "error"} <= lineage(family)
    family.registry.finish_run(later, RunStatus.FAILED)
    family.registry.collect(ALL, apply=True)
    assert lineage(family) == {"grandparent", "child", "other", "verified"}
    assert family.registry.lineage(later) == ()
    assert problems(family.registry) == []


def test_an_object_that_others_use_stays(family: Scene) -> None:
    """Two candidates may be built to the same bytes, and an object may be an original as well."""
    record(family, "twin", 2)  # the same bytes as the replacement
    family.registry.record_original(family.variant(9), "somewhere")
    record(family, "known", 9)
    end(family)
    family.registry.collect(ALL, apply=True)
    assert not lineage(family) & {"twin", "known"}
    for number in (2, 9):
        sha256 = family.variant(number).sha256
        assert family.registry.code_object(sha256) is not None
        assert family.registry.load_object(sha256) == family.variant(number).data


def test_a_second_timing_leaves_no_statement_behind(family: Scene) -> None:
    """The statement is issued again; its former text is named by nothing."""
    family.registry.record_second_timing(
        "child", 1.2, Verdict(Gate.G4, Outcome.PASS, "ok", ""), confirmed=True)
    done = family.registry.collect(Retention(rejected_days=None, grace_s=0), apply=True)
    assert (done.blobs, done.orphans) == (1, 1)
    assert pull(family.registry, original=family.original.sha256, allow_weaker=True).data
    assert problems(family.registry) == []


def age(registry: Registry, sha256: str, seconds: float) -> Path:
    store = registry._blobs
    assert isinstance(store, BlobStore)
    path = store.path(sha256)
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_the_grace_period(scene: Scene) -> None:
    old, young = (scene.registry._blobs.put(data) for data in (b"old", b"young"))
    age(scene.registry, old, 90_000)
    path = age(scene.registry, young, 80_000)
    done = scene.registry.collect(Retention(), apply=True)
    assert (done.blobs, done.orphans) == (1, 1)
    assert not scene.registry._blobs.exists(old)
    # To put it again is to use it.
    age(scene.registry, young, 90_000)
    scene.registry._blobs.put(b"young")
    assert time.time() - path.stat().st_mtime < 60
    assert scene.registry.collect(Retention(), apply=True).blobs == 0


def test_what_a_killed_writer_left(scene: Scene) -> None:
    folder = scene.registry.path / "blobs" / "ab"
    folder.mkdir(exist_ok=True)
    for name, seconds in ((".old.zst.1.tmp", 90_000), (".new.zst.1.tmp", 60)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - seconds,) * 2)
    (folder / "README").write_text("not a blob")
    done = scene.registry.collect(Retention(grace_s=0), apply=True)
    assert (done.unfinished, done.unfinished_bytes) == (1, 4)
    assert {path.name for path in folder.iterdir()} >= {".new.zst.1.tmp", "README"}


def test_a_damaged_document_stops_it(scene: Scene) -> None:
    """Who cannot read a dispatch cannot know which blobs it needs."""
    orphan = scene.registry._blobs.put(b"orphan")
    with scene.registry._database.read() as session:
        sha256 = session.connection().exec_driver_sql(
            "SELECT content_sha256 FROM dispatch").scalar_one()
    age(scene.registry, sha256, 0).write_bytes(b"junk")
    with pytest.raises(RegistryError, match="what a dispatch needs is not known"):
        scene.registry.collect(ALL, apply=True)
    assert scene.registry._blobs.exists(orphan)


def captures(scene: Scene) -> dict[str, str]:
    """By name: two plain ones, one held out, a counterexample, one of a timed dispatch."""
    made = {}
    for number, name in enumerate(("first", "second", "held out", "example")):
        capture = make_capture(name, code_object=scene.original.sha256, dynamic_lds=number)
        if name == "example":
            scene.registry.record_counterexample(capture, "d" * 64)
        else:
            scene.registry.record_capture(capture, held_out=name == "held out")
    made.update({r.name: r.sha256 for r in scene.registry.captures()})
    return made


@BOTH
@pytest.mark.parametrize(("share", "gone"), [
    (4, set()), (3, {"first"}), (2, {"first", "second"}), (0, {"first", "second"})])
def test_the_oldest_captures_go_first(scene: Scene, share: int, gone: set[str]) -> None:
    made = captures(scene)
    size = scene.registry.captures()[0].size
    retention = Retention(capture_bytes=share * size, grace_s=0)
    said = scene.registry.collect(retention)
    done = scene.registry.collect(retention, apply=True)
    assert done == said
    assert {r.name for r in scene.registry.captures()} == set(made) - gone
    assert (done.captures, done.capture_bytes_kept) == (len(gone), (4 - len(gone)) * size)
    for record in scene.registry.captures():
        assert scene.registry.load_capture(record.sha256).name == record.name
    assert problems(scene.registry) == []


def test_the_quota_of_captures(scene: Scene) -> None:
    capture = make_capture(code_object=scene.original.sha256)
    registry = Registry(scene.registry.path, max_capture_bytes=capture.size)
    sha256 = registry.record_capture(capture)
    assert registry.record_capture(capture) == sha256
    files = blobs(registry)
    other = replace(capture, dynamic_lds=0)
    with pytest.raises(QuotaError, match=r"does not fit.*gc --capture-bytes"):
        registry.record_capture(other)
    assert blobs(registry) == files
    assert registry.record_counterexample(other, "d" * 64) is not None
    registry.close()


@pytest.mark.parametrize("deletions", range(0, 6, 2))
def test_interruption_leaves_a_whole_registry(family: Scene, deletions: int,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    end(family)
    real, left = BlobStore.delete, [deletions]

    def delete(self: BlobStore, stored: object) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        real(self, stored)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(BlobStore, "delete", delete)
        with pytest.raises(KeyboardInterrupt):
            family.registry.collect(ALL, apply=True)
    assert problems(family.registry) == []
    assert pull(family.registry, original=family.original.sha256, allow_weaker=True).data
    again = family.registry.collect(ALL, apply=True)
    assert (again.blobs, again.orphans) == (6 - deletions, 6 - deletions)


def test_a_reader_that_is_overtaken(family: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement of the rows that it sees is issued again and collected under its hands."""
    other = Registry(family.registry.path)
    real = BlobStore.get
    read: list[str] = []

    def get(self: BlobStore, sha256: str) -> bytes:
        read.append(sha256)
        if len(read) == 1:
            monkeypatch.setattr(BlobStore, "get", real)
            other.record_second_timing(
                "child", 1.2, Verdict(Gate.G4, Outcome.PASS, "ok", ""), confirmed=True)
            assert other.collect(Retention(rejected_days=None, grace_s=0), apply=True).blobs == 1
            monkeypatch.setattr(BlobStore, "get", get)
        return real(self, sha256)

    monkeypatch.setattr(BlobStore, "get", get)
    [offer] = offers(family.registry, family.original.sha256)
    assert offer.statement is not None
    assert offer.statement.sha256 == read[-1] != read[0]
    other.close()


def test_any_store_of_blobs(tmp_path: Path, scene: Scene) -> None:
    registry = Registry(tmp_path / "r", blobs_url=f"memory://{tmp_path}")
    registry.record_original(scene.original, "a test")
    orphan = registry._blobs.put(b"orphan")
    assert registry.collect(Retention(), apply=True).blobs == 0
    assert registry.collect(Retention(grace_s=0), apply=True).blobs == 1
    assert not registry._blobs.exists(orphan)
    assert registry.load_object(scene.original.sha256) == scene.original.data
    registry.close()


def test_modelled_replacements_are_evidence_too(scene: Scene) -> None:
    scene.commit("c", number=1, source=TimingSource.MODELLED)
    end(scene)
    assert scene.registry.collect(ALL, apply=True).candidates == 0


def command(scene: Scene, *arguments: str) -> int:
    scene.registry.close()
    return main(["gc", "--registry", str(scene.registry.path), *arguments])


def test_command(family: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    end(family)
    options = ("--rejected-days", "0", "--grace-hours", "0")
    assert command(family, *options) == 0
    shown = capsys.readouterr().out
    assert "would be removed" in shown
    assert "nothing was removed; --apply removes it" in shown
    assert "nephew" in lineage(family)
    assert command(family, *options, "--apply", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema_version"], found["applied"], found["candidates"]) == (1, True, 3)
    assert "nephew" not in lineage(family)
    assert command(family) == 0
    assert command(family, "--rejected-days", "never", "--capture-bytes", "2G") == 0


@pytest.mark.parametrize("options", [
    ("--rejected-days", "-1"), ("--rejected-days", "nan"), ("--capture-bytes", "-1"),
    ("--capture-bytes", "many"), ("--grace-hours", "x"), ("--capture-bytes", "1e9")])
def test_command_refuses(scene: Scene, options: tuple[str, str],
                         capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(scene, f"{options[0]}={options[1]}")
    assert ended.value.code == 2
    assert options[1] in capsys.readouterr().err


def test_command_without_a_registry(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["gc", "--apply"]) == 2
    assert "no registry at" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


