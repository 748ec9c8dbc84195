"""What a statement says, when it is issued, and that it comes out of the rows again."""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlmodel import select

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import Timing, TimingSource
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry import pull
from asmevo.registry.database.models import SignatureRow, StatementRow
from asmevo.registry.errors import KeyFileError, RegistryError, StatementError, StatementFault
from asmevo.registry.registry import Registry
from asmevo.registry.signing.keys import Domain, generate, load_signing_key, verifies
from asmevo.registry.signing.statement import Statement, canonical, check_statement
from tests.registry.conftest import STRICT
from tests.registry.delivery.test_pull import execute

if TYPE_CHECKING:
    from tests.registry.conftest import Scene

BACKENDS = ("sqlite", "postgresql")
PASS = Verdict(Gate.G3, Outcome.PASS, "ok", "1.2x", {"speedup": 1.2})


def statement(scene: Scene, candidate: str = "c") -> Statement:
    with scene.registry._database.read() as session:
        return check_statement(session, candidate, scene.registry._blobs)


def reopened(scene: Scene, **arguments: Any) -> Registry:
    """The same registry as a new process has it."""
    scene.registry.close()
    path, url, *_ = scene.registry._arguments
    return Registry(str(path), None if url is None else str(url), **arguments)


def signatures(registry: Registry) -> list[SignatureRow]:
    with registry._database.read() as session:
        return list(session.exec(select(SignatureRow).order_by(SignatureRow.public_key)))


def sha256_of(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_it_says_all_that_a_replacement_rests_on(scene: Scene) -> None:
    baseline = Timing(scene.dispatch.sha256, (13.0, 14.0, 13.5), TimingSource.MEASURED,
                      "device-measured", 2)
    scene.registry.record_baseline(scene.run_id, scene.original.sha256, [baseline])
    scene.registry.record_candidate(scene.candidate("first"), assembly="; first\n")
    scene.registry.record_candidate(scene.candidate("p", parent="first"), assembly="; p\n",
                                    built=scene.variant(1))
    scene.registry.record_candidate(scene.candidate("c", parent="p"), assembly="; c\n",
                                    built=scene.variant(2))
    record = scene.registry.commit_replacement("c", 1.25, STRICT)
    candidate, run = scene.registry.candidate("c"), scene.registry.run(scene.run_id)
    assert candidate.created is not None
    edits = [{"kernel": scene.kernel, "start": 3, "stop": 5, "lines": ["s_nop 0", "s_nop 1"],
              "reason": "shorter wait"}]
    timing = {"run_id": scene.run_id, "dispatch_sha256": scene.dispatch.sha256,
              "source": "measured", "device": "device-measured", "unit": "us"}

    def an_object(code: CodeObject) -> dict[str, Any]:
        return {"sha256": code.sha256, "isa": "gfx942", "size": len(code.data),
                "kernels": [k.symbol for k in code.kernels]}

    assert statement(scene).document == {
        "format": 1,
        "original": an_object(scene.original), "object": an_object(scene.variant(2)),
        "kernel": scene.kernel, "isa": "gfx942",
        "assembly_sha256": hashlib.sha256(b"; c\n").hexdigest(),
        "speedup": 1.25, "timing_source": "measured", "device": "device-measured",
        "evidence_complete": True, "committed": record.created.isoformat(timespec="microseconds"),
        "candidate": {
            "id": "c", "original_sha256": scene.original.sha256, "kernel": scene.kernel,
            "object_sha256": record.object_sha256, "edits_sha256": sha256_of(edits),
            "rule": "nop-trim", "direction": "latency-hiding",
            "rationale_sha256": sha256_of("fewer wait states"), "worker": 2,
            "status": "committed",
            "created": candidate.created.isoformat(timespec="microseconds")},
        "parents": [
            {"id": name, "run_id": scene.run_id, "original_sha256": scene.original.sha256,
             "kernel": scene.kernel, "object_sha256": built, "rule": "nop-trim",
             "assembly_sha256": hashlib.sha256(f"; {name}\n".encode()).hexdigest(),
             "edits_sha256": sha256_of(edits)}
            for name, built in (("p", scene.variant(1).sha256), ("first", None))],
        "verdicts": [
            {"gate": gate, "attempt": attempt, "outcome": "pass", "code": "ok", "reason": "fine",
             "evidence_sha256": sha256_of({"cosine": 1.0}), "dispatches": None,
             "sanitizer": False}
            for gate, attempt in (("G0", 1), ("G1", 1), ("G2", 1), ("G2", 2), ("G2", 3),
                                  ("G3", 1), ("G4", 1))],
        "timings": [{**timing, "candidate_id": "c", "original_sha256": None, "warmup": 3,
                     "samples": 2, "samples_sha256": sha256_of([10.5, 10.25]),
                     "median": 10.375}],
        "baseline": [{**timing, "candidate_id": None, "original_sha256": scene.original.sha256,
                      "warmup": 2, "samples": 3, "samples_sha256": sha256_of([13.0, 14.0, 13.5]),
                      "median": 13.5}],
        "judgement": STRICT.to_json(),
        "second_timing": None,
        "run": {"id": scene.run_id, "task": "optimize", "seed": 1,
                "config_sha256": run.config_sha256, "package_version": run.package_version,
                "toolchain": {"assembler": "22.1"}, "device": "device-measured",
                "device_source": "measured",
                "started": run.started.isoformat(timespec="microseconds")},
    }


def test_the_blob_is_the_canonical_document(scene: Scene) -> None:
    scene.commit("c", number=1, speedup=2)  # an int, which the database makes 2.0
    found = statement(scene)
    data = scene.registry.load_object(found.sha256)
    assert data == canonical(json.loads(data)) == canonical(found.document)
    assert data.isascii()
    assert b'"speedup":2.0' in data


def test_it_comes_out_of_the_rows_of_another_process(scene: Scene) -> None:
    scene.commit("c", number=1)
    before = statement(scene)
    scene.registry = reopened(scene)
    assert statement(scene) == before


def test_what_goes_on_in_the_run_changes_nothing(scene: Scene) -> None:
    from asmevo.registry.records import RunStatus

    scene.commit("c", number=1)
    before = statement(scene)
    scene.commit("d", number=2)
    scene.registry.record_candidate(scene.candidate("e", parent="c"))
    scene.registry.record_original(scene.original, "elsewhere")
    scene.registry.record_dispatches([replace(scene.dispatch, held_out=True)])
    scene.registry.finish_run(scene.run_id, RunStatus.COMPLETED)
    scene.registry.continue_run(scene.run_id)
    assert statement(scene) == before


def test_the_baseline_of_a_run_is_fixed_once_something_is_committed(scene: Scene) -> None:
    timing = Timing(scene.dispatch.sha256, (1.0,), TimingSource.MEASURED, "device-measured", 1)
    scene.registry.record_baseline(scene.run_id, scene.original.sha256, [timing])
    scene.commit("c", number=1)
    with pytest.raises(RegistryError, match="has replacements"):
        scene.registry.record_baseline(scene.run_id, scene.original.sha256, [timing])
    statement(scene)


def test_a_second_timing_makes_it_anew(scene: Scene) -> None:
    scene.commit("c", number=1)
    before = statement(scene)
    scene.registry.record_second_timing("c", 1.2, PASS, confirmed=True)
    confirmed = statement(scene)
    said = confirmed.document["second_timing"]
    assert (said["speedup"], said["confirmed"], said["outcome"]) == (1.2, True, "pass")
    assert {**confirmed.document, "second_timing": None} == before.document
    scene.registry.record_second_timing("c", 0.9, PASS, confirmed=False)
    assert statement(scene).document["second_timing"]["confirmed"] is False


@pytest.mark.sqlite
def test_a_second_timing_vouches_for_nothing_that_was_changed(scene: Scene) -> None:
    """Otherwise it would make a statement of what somebody did to the rows."""
    scene.commit("c", number=1)
    execute(scene, "UPDATE replacement SET speedup = 9")
    with pytest.raises(StatementError, match=r"speedup was 1\.25 and is 9\.0"):
        scene.registry.record_second_timing("c", 1.2, PASS, confirmed=True)
    execute(scene, "UPDATE replacement SET speedup = 1.25")
    execute(scene, "DELETE FROM statement")
    scene.registry.record_second_timing("c", 1.2, PASS, confirmed=True)
    with pytest.raises(StatementError) as caught:
        statement(scene)
    assert caught.value.fault is StatementFault.MISSING


@pytest.mark.sqlite
@pytest.mark.parametrize(("change", "words"), [
    ("UPDATE verdict SET outcome = 'fail' WHERE gate = 'G3'",
     r"verdicts\[5\]\.outcome was 'pass' and is 'fail'"),
    ("DELETE FROM verdict WHERE gate = 'G4'", "verdicts was a list of 7 and is a list of 6"),
    ("UPDATE run SET seed = 2", "run.seed was 1 and is 2"),
    ("UPDATE timing SET samples = '[1.0]'", r"timings\[0\]\.median was 10\.375 and is 1\.0"),
    ("UPDATE candidate SET parent_id = 'c'", "malformed"),
    ("UPDATE timing SET samples = '[]'", "malformed"),
    ("UPDATE verdict SET evidence = '[' WHERE gate = 'G3'", "malformed"),
    ("UPDATE replacement SET created = 'yesterday'", "malformed"),
    ("DELETE FROM replacement", "it is no replacement"),
])
def test_it_tells_what_was_changed(scene: Scene, change: str, words: str) -> None:
    scene.commit("c", number=1)
    execute(scene, change)
    with pytest.raises(StatementError, match=words) as caught:
        statement(scene)
    assert caught.value.fault is StatementFault.MISMATCH
    assert "\n" not in str(caught.value)


def test_readers_never_see_half_of_a_new_statement(scene: Scene) -> None:
    """What is stated anew while somebody pulls is no damage: all is read of one moment."""
    scene.commit("c", number=1)
    reader = reopened(scene)
    done = threading.Event()
    refused = []

    def read() -> None:
        while not done.is_set():
            try:
                pull(reader, original=scene.original.sha256)
            except RegistryError as error:
                refused.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(40):
        scene.registry.record_second_timing("c", 1.2 + number / 1000, PASS, confirmed=True)
    done.set()
    thread.join()
    reader.close()
    assert refused == []


def test_a_commit_that_fails_states_nothing(scene: Scene) -> None:
    scene.registry.record_candidate(scene.candidate("c", outcome=Outcome.FAIL))
    with pytest.raises(RegistryError, match="is no replacement"):
        scene.registry.commit_replacement("c", 1.5)
    with scene.registry._database.read() as session:
        assert session.exec(select(StatementRow)).all() == []


@pytest.fixture
def signing(scene: Scene, tmp_path: Path) -> Callable[[str], Path]:
    """Replace the scene's registry by one that signs with a new key."""
    def make(name: str) -> Path:
        generate(tmp_path / name, name)
        scene.registry = reopened(scene, signing_key=tmp_path / name)
        return tmp_path / name
    return make


def test_a_commit_is_signed(scene: Scene, signing: Callable[[str], Path]) -> None:
    key = load_signing_key(signing("key"))
    scene.commit("c", number=1)
    [row] = signatures(scene.registry)
    assert (row.candidate_id, row.public_key, row.statement_sha256) == (
        "c", key.public_key, statement(scene).sha256)
    assert verifies(row.public_key, row.signature, Domain.STATEMENT, row.statement_sha256)


def test_the_commit_of_a_search_is_signed(scene: Scene, signing: Callable[[str], Path]) -> None:
    signing("key")
    scene.registry.record_search(
        scene.run_id, [{"number": 0, "kind": "committed"}], candidate=scene.candidate("c"),
        assembly="; c\n", built=scene.variant(1), speedup=1.5, judged=STRICT)
    assert [s.statement_sha256 for s in signatures(scene.registry)] == [statement(scene).sha256]


def test_a_second_timing_is_signed_and_older_signatures_go(
        scene: Scene, signing: Callable[[str], Path]) -> None:
    """They are of a statement that no longer holds, whoever made them."""
    other, own = signing("other"), signing("own")
    scene.commit("c", number=1)
    scene.registry.sign(["c"], load_signing_key(other))
    assert len(signatures(scene.registry)) == 2
    scene.registry.record_second_timing("c", 1.2, PASS, confirmed=True)
    [row] = signatures(scene.registry)
    assert row.public_key == load_signing_key(own).public_key
    assert row.statement_sha256 == statement(scene).sha256


def test_signing_what_is_there(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c", number=1)
    scene.commit("d", number=2)
    generate(tmp_path / "key")
    key = load_signing_key(tmp_path / "key")
    assert scene.registry.sign(["c"], key) == 1
    assert scene.registry.sign(["c", "d"], key) == 1
    assert scene.registry.sign(["c", "d"], key) == 0
    assert {s.candidate_id for s in signatures(scene.registry)} == {"c", "d"}


@pytest.mark.sqlite
def test_nothing_is_signed_if_one_was_changed(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c", number=1)
    scene.commit("d", number=2)
    execute(scene, "UPDATE replacement SET speedup = 3 WHERE candidate_id = 'd'")
    generate(tmp_path / "key")
    with pytest.raises(StatementError, match="speedup"):
        scene.registry.sign(["c", "d"], load_signing_key(tmp_path / "key"))
    assert signatures(scene.registry) == []


@pytest.mark.sqlite
def test_replacements_from_before_there_were_statements(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c", number=1)
    execute(scene, "DELETE FROM statement")
    generate(tmp_path / "key")
    key = load_signing_key(tmp_path / "key")
    with pytest.raises(StatementError, match="--state"):
        scene.registry.sign(["c"], key)
    assert scene.registry.sign(["c"], key, state=True) == 1
    assert signatures(scene.registry)[0].statement_sha256 == statement(scene).sha256


def test_a_key_that_is_not_to_be_had_fails_first(scene: Scene, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "new", signing_key=tmp_path / "none")
    with pytest.raises(KeyFileError, match="no such file"):
        registry.check_writable()
    assert not (tmp_path / "new").exists()
    (tmp_path / "none").write_text("no key")
    (tmp_path / "none").chmod(0o644)
    with pytest.raises(KeyFileError, match="accessed by others"):
        registry.check_writable()


def test_a_registry_that_signs_can_be_sent_to_another_process(
        scene: Scene, signing: Callable[[str], Path]) -> None:
    signing("key")
    scene.registry.check_writable()
    sent = pickle.dumps(scene.registry)
    assert b"PRIVATE" not in sent
    scene.registry = pickle.loads(sent)
    scene.commit("c", number=1)
    assert len(signatures(scene.registry)) == 1
