"""Round trips of every record, and what the registry refuses to record."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from sqlmodel import select

import asmevo
from asmevo.device.device import Timing, TimingSource
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.database.models import Table
from asmevo.registry.database.row_digest import row_digest
from asmevo.registry.errors import BlobCorruptError, RegistryError
from asmevo.registry.records import CandidateStatus, RunStatus
from asmevo.registry.registry import Registry
from tests.registry.tampering import count, execute

if TYPE_CHECKING:

    from asmevo.codeobject.container import CodeObject
    from asmevo.registry.replacement.listing import Identities
    from tests.registry.conftest import Scene


BACKENDS = ("sqlite", "postgresql")


def recent(time: datetime | None) -> bool:
    assert time is not None
    assert time.tzinfo is UTC
    return timedelta(0) <= datetime.now(UTC) - time < timedelta(minutes=1)


def test_original(registry: Registry, original: CodeObject) -> None:
    sha256 = registry.record_original(original, "wheel")
    assert registry.record_original(original, "again") == sha256 == original.sha256
    assert registry.load_object(sha256) == original.data
    record = registry.code_object(sha256)
    assert record is not None
    assert (record.isa, record.size, record.source) == ("gfx942", len(original.data), "wheel")
    assert record.kernels == tuple(k.symbol for k in original.kernels)
    assert recent(record.created)
    assert registry.find_objects(sha256[:8].upper()) == (record,)
    assert registry.find_objects("%") == ()
    assert registry.code_object("0" * 64) is None


def test_recovered(scene: Scene) -> None:
    registry, sha256 = scene.registry, scene.original.sha256
    for version in ("22.1", "22.1", "23.0"):
        text = registry.record_recovered(sha256, "s_endpgm\n", {"masks": []}, {"as": version})
    first, second = registry.recovered(sha256)
    assert (first.report, first.toolchain) == ({"masks": []}, {"as": "22.1"})
    assert second.toolchain == {"as": "23.0"}
    assert registry.load_text(text) == "s_endpgm\n"
    with pytest.raises(RegistryError, match="refuses the record"):
        registry.record_recovered("0" * 64, "text", {}, {})


def test_dispatch_is_rebuilt_exactly(scene: Scene) -> None:
    registry = scene.registry
    held_out = scene.other_dispatch(name="m64", held_out=True, fill=9)
    assert registry.record_dispatches([scene.dispatch, held_out]) == (
        scene.dispatch.sha256, held_out.sha256)
    for dispatch in (scene.dispatch, held_out):
        loaded = registry.load_dispatch(dispatch.sha256)
        assert loaded == dispatch
        assert loaded.sha256 == dispatch.sha256
        assert loaded.moved(0x1000) == dispatch.moved(0x1000)


def test_a_dispatch_that_relies_on_time_or_order_stays_one(scene: Scene) -> None:
    inputs, output = scene.dispatch.regions
    dispatch = replace(scene.dispatch, relies_on_time=True,
                       regions=(inputs, replace(output, order_dependent=True)))
    scene.registry.record_dispatches([dispatch])
    assert scene.registry.load_dispatch(dispatch.sha256) == dispatch


def test_labels_of_a_dispatch_can_change(scene: Scene) -> None:
    relabelled = scene.other_dispatch(name="renamed", held_out=True)
    assert relabelled.sha256 == scene.dispatch.sha256
    scene.registry.record_dispatches([relabelled])
    assert scene.registry.load_dispatch(relabelled.sha256) == relabelled


@pytest.mark.parametrize(("column", "value"), [
    ("held_out", True), ("name", "x"), ("kernel", "x"), ("sha256", "0" * 64),
])
def test_tampered_dispatch_row_is_noticed(scene: Scene, column: str, value: object) -> None:
    execute(scene.registry, f"UPDATE dispatch SET {column} = :value", value=value)
    sha256 = "0" * 64 if column == "sha256" else scene.dispatch.sha256
    with pytest.raises(RegistryError, match="does not match its content"):
        scene.registry.load_dispatch(sha256)


@pytest.mark.parametrize("blob", [
    b"", b"[]", b"{", b'{"format": 1}', b'{"format": 2}', b"\xff", b"[" * 100_000,
])
def test_hostile_dispatch_description(scene: Scene, tmp_path: Path, blob: bytes) -> None:
    from asmevo.registry.blobs.store import BlobStore

    content = BlobStore(scene.registry.path).put(blob)
    execute(scene.registry, "UPDATE dispatch SET content_sha256 = :content", content=content)
    with pytest.raises(RegistryError, match="does not describe a dispatch"):
        scene.registry.load_dispatch(scene.dispatch.sha256)


def test_run(scene: Scene) -> None:
    registry = scene.registry
    run = registry.run(scene.run_id)
    assert (run.task, run.status, run.seed, run.device, run.device_source) == (
        "optimize", RunStatus.RUNNING, 1, "device-measured", "measured")
    assert run.package_version == asmevo.__version__
    assert run.toolchain == {"assembler": "22.1"}
    assert registry.load_text(run.config_sha256) == "search: {seed: 1}\n"
    assert run.finished is None
    registry.finish_run(scene.run_id, RunStatus.INTERRUPTED)
    run = registry.run(scene.run_id)
    assert run.status is RunStatus.INTERRUPTED
    assert recent(run.started)
    assert recent(run.finished)
    second = registry.start_run(task="verify", config="", seed=0, toolchain={}, device="d",
                                device_source="measured")
    assert [r.id for r in registry.runs()] == [second, scene.run_id]
    with pytest.raises(RegistryError, match="no run 'x'"):
        registry.finish_run("x", RunStatus.COMPLETED)


def test_passwords_are_no_part_of_a_recorded_configuration(registry: Registry) -> None:
    config = "registry:\n  url: postgresql+psycopg://me:s3cr3t@host/d?password=s3cr3t\nseed: 1\n"
    run_id = registry.start_run(task="t", config=config, seed=1, toolchain={}, device="d",
                                device_source="modelled")
    stored = registry.load_text(registry.run(run_id).config_sha256)
    assert stored == config.replace("s3cr3t", "***")


def test_baseline(scene: Scene) -> None:
    timings = (Timing(scene.dispatch.sha256, (7.5,), TimingSource.MODELLED, "emulator"),
               Timing(scene.dispatch.sha256, (8.0, 8.5), TimingSource.MEASURED, "mi300x", 10))
    scene.registry.record_baseline(scene.run_id, scene.original.sha256, timings)
    assert scene.registry.baseline(scene.run_id) == timings


def test_candidate(scene: Scene) -> None:
    built = scene.variant(1)
    stored = scene.registry.record_candidate(scene.candidate("c1"), assembly="text", built=built)
    assert stored.object_sha256 == built.sha256
    assert scene.registry.load_object(built.sha256) == built.data
    assert stored.assembly_sha256 is not None
    assert scene.registry.load_text(stored.assembly_sha256) == "text"
    assert recent(stored.created)
    assert scene.registry.candidate("c1") == stored
    assert replace(stored, assembly_sha256=None, object_sha256=None,
                   created=None) == scene.candidate("c1")


def test_candidate_that_was_never_built(scene: Scene) -> None:
    failed = scene.candidate("c1", gates=(Gate.G0,), outcome=Outcome.FAIL,
                             status=CandidateStatus.REJECTED)
    stored = scene.registry.record_candidate(replace(failed, timings=()))
    assert scene.registry.candidate("c1") == stored
    assert (stored.assembly_sha256, stored.object_sha256) == (None, None)


def test_lineage_keeps_parents_and_order(scene: Scene) -> None:
    parents = {"a": None, "b": "a", "c": "a", "d": "c"}
    for number, (name, parent) in enumerate(parents.items()):
        scene.registry.record_candidate(scene.candidate(name, parent=parent), assembly=name,
                                        built=scene.variant(number))
    lineage = scene.registry.lineage(scene.run_id)
    assert {c.id: c.parent_id for c in lineage} == parents
    assert [c.id for c in lineage] == list(parents)
    assert all(len(c.verdicts) == 7 and len(c.timings) == 1 for c in lineage)


def test_evidence_that_json_lacks(scene: Scene) -> None:
    odd = Verdict(Gate.G2, Outcome.FAIL, "mismatch", "nan", {
        "max": math.inf, "min": -math.inf, "cosine": math.nan, "fine": 0.1, "deep": [{"x": None}]})
    scene.registry.record_candidate(replace(scene.candidate("c1"), verdicts=(odd,)))
    assert scene.registry.candidate("c1").verdicts[0].evidence == {
        "max": "inf", "min": "-inf", "cosine": "nan", "fine": 0.1, "deep": [{"x": None}]}
    bad = replace(odd, evidence={"x": cast(float, np.float32(1))})
    with pytest.raises(RegistryError, match="float32, which is not JSON"):
        scene.registry.record_candidate(replace(scene.candidate("c2"), verdicts=(bad,)))


def test_refused_candidates_leave_nothing(scene: Scene) -> None:
    good = scene.candidate("c1")
    timing = good.timings[0]
    scene.registry.record_candidate(good)
    for bad, reason in (
        (scene.candidate("c1"), "(?i)unique"),
        (replace(good, id="x", run_id="none"), "(?i)foreign key"),
        (replace(good, id="x", original_sha256="0" * 64), "(?i)foreign key"),
        (replace(good, id="x", parent_id="none"), "unknown parent"),
        (replace(good, id="x", parent_id="c1", kernel="other"), "different kernels"),
        (replace(good, id="x", timings=(replace(timing, dispatch="0" * 64),)), "(?i)foreign key"),
        (replace(good, id="x", timings=(replace(timing, samples_us=(math.nan,)),)), "positive"),
        (replace(good, id="x", timings=(replace(timing, samples_us=()),)), "no samples"),
        (replace(good, id="x", timings=(replace(timing, dispatch="m4"),)), "SHA-256"),
        (replace(good, id="x", status=CandidateStatus.COMMITTED), "commit_replacement only"),
        (replace(good, id="x", rule="\ud800"), "refuses the record"),
        (replace(good, id="x", worker=1 << 70), "refuses the record"),
    ):
        with pytest.raises(RegistryError, match=reason) as caught:
            scene.registry.record_candidate(bad, assembly="t", built=scene.variant(7))
        assert "\n" not in str(caught.value)
    assert [count(scene.registry, t) for t in ("candidate", "verdict", "timing")] == [1, 7, 1]
    assert scene.registry.code_object(scene.variant(7).sha256) is None


def test_commit(scene: Scene) -> None:
    record = scene.commit("c1", number=1, speedup=1.5)
    assert (record.original_sha256, record.kernel, record.object_sha256) == (
        scene.original.sha256, scene.kernel, scene.variant(1).sha256)
    assert (record.speedup, record.timing_source, record.device, record.isa) == (
        1.5, "measured", "device-measured", "gfx942")
    assert record.run_id == scene.run_id
    assert record.evidence_complete
    assert scene.registry.candidate("c1").status is CandidateStatus.COMMITTED
    assert scene.registry.replacements() == (record,)
    assert scene.registry.commit_replacement("c1", 1.5) == record
    assert count(scene.registry, "replacement") == 1
    with pytest.raises(RegistryError, match="already committed"):
        scene.registry.commit_replacement("c1", 1.6)


@pytest.mark.parametrize("missing", [Gate.G0, Gate.G1, Gate.G2, Gate.G3, Gate.G4])
def test_commit_needs_every_gate(scene: Scene, missing: Gate) -> None:
    record = scene.candidate("c1")
    verdicts = list(record.verdicts)
    verdicts.remove(next(v for v in verdicts if v.gate is missing))
    scene.registry.record_candidate(replace(record, verdicts=tuple(verdicts)), assembly="t",
                                    built=scene.variant(1))
    with pytest.raises(RegistryError, match=f"gate {missing} has"):
        scene.registry.commit_replacement("c1", 1.5)
    assert scene.registry.replacements() == ()


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.MISSING])
def test_commit_refuses_any_verdict_but_pass(scene: Scene, outcome: Outcome) -> None:
    record = scene.candidate("c1", gates=(*Gate, Gate.G2, Gate.G2, Gate.G2), outcome=outcome)
    scene.registry.record_candidate(record, assembly="t", built=scene.variant(1))
    with pytest.raises(RegistryError, match=f"gate G2 says {outcome}"):
        scene.registry.commit_replacement("c1", 1.5)


def test_commit_refuses(scene: Scene) -> None:
    registry = scene.registry
    good = scene.candidate("a")
    two = (good.timings[0], replace(good.timings[0], device="another"))
    registry.record_candidate(replace(good, id="rejected", status=CandidateStatus.REJECTED),
                              built=scene.variant(1))
    registry.record_candidate(replace(good, id="untimed", timings=()), built=scene.variant(1))
    registry.record_candidate(replace(good, id="unbuilt"))
    registry.record_candidate(replace(good, id="same"), built=scene.original)
    registry.record_candidate(replace(good, id="devices", timings=two), built=scene.variant(1))
    for name, reason in (("rejected", "status is rejected"), ("untimed", "no timing"),
                         ("unbuilt", "no object"), ("same", "the original itself"),
                         ("devices", "different devices"), ("nobody", "no candidate 'nobody'")):
        with pytest.raises(RegistryError, match=reason):
            registry.commit_replacement(name, 1.5)
    for speedup in (math.nan, math.inf, 0.0, -1.0):
        with pytest.raises(RegistryError, match="not a positive number"):
            registry.commit_replacement("rejected", speedup)


def test_one_modelled_timing_makes_a_modelled_replacement(scene: Scene) -> None:
    record = scene.candidate("c1")
    mixed = (*record.timings, replace(record.timings[0], source=TimingSource.MODELLED))
    scene.registry.record_candidate(replace(record, timings=mixed), built=scene.variant(1))
    assert scene.registry.commit_replacement("c1", 1.5).timing_source == "modelled"


def test_replacements_by_what_they_belong_to(scene: Scene) -> None:
    registry = scene.registry
    records = [scene.commit(f"c{n}", number=n, speedup=1 + n / 8,
                            source=TimingSource.MEASURED if n % 2 else TimingSource.MODELLED)
               for n in range(1, 7)]
    best = sorted(records, key=lambda r: (r.timing_source, -r.speedup))
    assert registry.replacements() == tuple(best)
    for wanted, expected in (
        ({"original_sha256": scene.original.sha256, "kernel": scene.kernel}, best),
        ({"kernel": "other"}, []), ({"run_id": scene.run_id}, best), ({"run_id": "none"}, []),
        ({"candidate_id": "c3", "object_sha256": None}, [r for r in best if r.speedup == 1.375]),
        ({"object_sha256": records[1].object_sha256}, [records[1]]),
        ({"object_sha256": records[1].object_sha256, "candidate_id": "c3"}, []),
    ):
        found = registry.replacements(**cast("Identities", wanted))
        assert found == tuple(expected)


def test_every_row_that_is_written_has_its_digest(scene: Scene) -> None:
    scene.commit("c1", number=1)
    scene.registry.record_second_timing(
        "c1", 1.2, Verdict(Gate.G3, Outcome.PASS, "ok", "", {"x": 1e-9}), confirmed=True)
    scene.registry.finish_run(scene.run_id, RunStatus.COMPLETED)
    with scene.registry._database.read() as session:
        rows = [row for mapper in Table._sa_registry.mappers
                for row in session.exec(select(mapper.class_))]
    assert {type(row).__name__ for row in rows} >= {
        "SchemaRow", "RunRow", "CandidateRow", "VerdictRow", "TimingRow", "ReplacementRow",
        "SecondTimingRow", "JudgementRow", "StatementRow"}
    assert [row for row in rows if row.digest != row_digest(row)] == []


def test_corrupt_object_is_noticed(scene: Scene) -> None:
    [blob] = scene.registry.path.glob(f"blobs/*/{scene.original.sha256}.zst")
    blob.write_bytes(blob.read_bytes()[:-20])
    with pytest.raises(BlobCorruptError):
        scene.registry.load_object(scene.original.sha256)


@pytest.mark.parametrize("statement", [
    "UPDATE verdict SET gate = 'G9' WHERE gate = 'G0'",
    "UPDATE candidate SET status = 'perfect'",
    "UPDATE candidate SET edits = '[{\"x\"\\: 1}]'",
    "UPDATE timing SET unit = 'ms'",
    "UPDATE timing SET samples = '[\"fast\"]'",
])
def test_malformed_rows_are_typed_errors(scene: Scene, statement: str) -> None:
    scene.registry.record_candidate(scene.candidate("c1"))
    execute(scene.registry, statement)
    with pytest.raises(RegistryError):
        scene.registry.candidate("c1")


@pytest.mark.sqlite  # PostgreSQL's columns hold nothing but their type
@pytest.mark.parametrize("statement", [
    "UPDATE candidate SET created = 'yesterday'", "UPDATE candidate SET created = 7",
    "UPDATE candidate SET created = x'00'", "UPDATE candidate SET edits = '{'",
    "UPDATE candidate SET edits = 7",
])
def test_rows_of_another_type_are_typed_errors(scene: Scene, statement: str) -> None:
    test_malformed_rows_are_typed_errors(scene, statement)


def test_instances_can_be_sent_to_workers(scene: Scene, original: CodeObject) -> None:
    copy: Registry = pickle.loads(pickle.dumps(scene.registry))
    assert copy.load_object(original.sha256) == original.data
    copy.record_original(scene.variant(1), "copy")
    assert scene.registry.code_object(scene.variant(1).sha256) is not None
    copy.close()
