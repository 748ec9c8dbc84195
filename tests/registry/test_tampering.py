"""What somebody changed in a registry is never handed out, and is told by its code."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import Timing, TimingSource
from asmevo.errors import AsmEvoError
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry import PullError, PullRefusal, Replacement, pull
from asmevo.registry.database.models import Table
from asmevo.registry.registry import Registry
from asmevo.registry.signing.keys import generate
from tests.registry.conftest import STRICT, Scene, make_dispatch

PASS = Verdict(Gate.G3, Outcome.PASS, "ok", "1.2x", {"speedup": 1.2})


@dataclass
class Release:
    """A closed registry with two signed replacements of one original, and who is trusted.

    ``best`` was made from a candidate that is no replacement, and was timed a second time.
    """

    path: Path
    trust: Path
    original: str
    best: bytes
    second: bytes
    public_key: str

    def copy(self, folder: Path) -> Release:
        shutil.copytree(self.path, folder)
        return Release(folder, self.trust, self.original, self.best, self.second, self.public_key)

    def pull(self, **arguments: Any) -> Replacement:
        registry = Registry(self.path)
        try:
            return pull(registry, original=self.original, trust=self.trust, **arguments)
        finally:
            registry.close()

    def refusal(self, **arguments: Any) -> PullRefusal:
        with pytest.raises(PullError) as caught:
            self.pull(**arguments)
        assert "\n" not in str(caught.value)
        return caught.value.code

    def execute(self, statement: str, *values: object) -> int:
        with closing(sqlite3.connect(self.path / "asmevo.db")) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            changed = connection.execute(statement, values).rowcount
            connection.commit()
        return changed

    def value(self, query: str) -> Any:
        with closing(sqlite3.connect(self.path / "asmevo.db")) as connection:
            return connection.execute(query).fetchone()[0]

    def blob(self, sha256: str) -> Path:
        return self.path / "blobs" / sha256[:2] / f"{sha256}.zst"


@pytest.fixture(scope="module")
def pristine(original: CodeObject, tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("release")
    public = generate(folder / "key", "release")
    registry = Registry(folder / "registry", signing_key=folder / "key")
    kernel = original.kernels[0].symbol
    dispatch = make_dispatch(kernel)
    registry.record_original(original, "amd-aiter")
    registry.record_dispatches([dispatch])
    run_id = registry.start_run(task="optimize", config="{}", seed=1, toolchain={"lld": "22"},
                                device="device-measured", device_source="measured")

    scene = Scene(registry, original, kernel, dispatch, run_id)
    registry.record_baseline(run_id, original.sha256, [
        Timing(dispatch.sha256, (13.0, 13.5), TimingSource.MEASURED, "device-measured", 3)])
    registry.record_candidate(scene.candidate("parent"), assembly="; parent\n",
                              built=scene.variant(1))
    registry.record_candidate(scene.candidate("best", parent="parent"), assembly="; best\n",
                              built=scene.variant(2))
    registry.commit_replacement("best", 1.3, STRICT)
    registry.record_second_timing("best", 1.2, PASS, confirmed=True)
    scene.commit("second", number=3, speedup=1.1)
    registry.close()
    return Release(registry.path, folder / "key.pub", original.sha256, scene.variant(2).data,
                   scene.variant(3).data, public)


@pytest.fixture
def release(pristine: Release, tmp_path: Path) -> Release:
    return pristine.copy(tmp_path / "registry")


def test_what_nobody_changed(release: Release) -> None:
    found = release.pull()
    assert found.data == release.best
    assert found.signers == (release.public_key,)
    assert found.skipped == ()


BEST = {
    "replacement": ["candidate_id = 'best'"],
    "candidate": ["id = 'best'", "id = 'parent'"],
    "code_object": ["source = 'candidate best'", "source = 'amd-aiter'"],
    "run": ["1"],
    "verdict": [f"candidate_id = 'best' AND gate = '{gate}' AND attempt = {attempt}"
                for gate, attempt in (("G0", 1), ("G2", 3), ("G4", 1))],
    "timing": ["candidate_id = 'best'", "candidate_id IS NULL"],
    "judgement": ["candidate_id = 'best'"],
    "second_timing": ["candidate_id = 'best'"],
    "statement": ["candidate_id = 'best'"],
    "signature": ["candidate_id = 'best'"],
}
"""The rows that a pull of the best depends on."""

FREE = {
    "replacement": {"id"},
    "candidate": set[str](),
    "candidate parent": {"direction", "rationale", "worker", "status", "created"},
    "code_object": {"source", "created"},  # where it was found first
    "run": {"status", "finished"},  # which change while it goes on
    "verdict": {"id"},
    "timing": {"id"},
    "judgement": set[str](),
    "second_timing": set[str](),
    "statement": {"created"},
    "signature": {"id", "created"},
}
"""Columns that say nothing of a replacement; ``digest`` is what `verify` looks at."""

OTHER_CODES = {
    ("statement", "candidate_id"): PullRefusal.NO_STATEMENT,
    ("signature", "candidate_id"): PullRefusal.UNSIGNED,
    ("signature", "public_key"): PullRefusal.SIGNATURE_INVALID,
    ("signature", "statement_sha256"): PullRefusal.SIGNATURE_INVALID,
    ("signature", "signature"): PullRefusal.SIGNATURE_INVALID,
}


def columns() -> Iterator[tuple[str, str, str]]:
    for table, rows in BEST.items():
        for row in rows:
            for column in Table.metadata.tables[table].columns:
                if column.name != "digest":
                    yield table, row, column.name


def changed(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, float):
        return value + 0.01
    if isinstance(value, int):
        return value + 1000 if value > 1 else 1 - value
    if value is None:
        return "2026-01-01 00:00:00.000000"
    text = str(value)
    try:
        return json.dumps(_changed_json(json.loads(text)))
    except ValueError:
        pass
    try:
        return str(datetime.fromisoformat(text).replace(year=2001))
    except ValueError:
        pass
    return text[:-1] + ("7" if text[-1] != "7" else "8")


def _changed_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {**value, "added": 1}
    if isinstance(value, list):
        return [*value, value[0] if value else 1]
    raise ValueError


@pytest.mark.parametrize(("table", "row", "column"), list(columns()))
def test_every_column_of_every_row(release: Release, table: str, row: str, column: str) -> None:
    """A new column is part of the statement, or says in `FREE` why not."""
    # Without the second one what is refused shows, whether or not it would be passed over.
    for name in ("replacement", "statement"):
        release.execute(f"DELETE FROM {name} WHERE candidate_id = 'second'")
    value = release.value(f"SELECT {column} FROM {table} WHERE {row}")
    new = 1000 if column == "id" and isinstance(value, int) else changed(value)
    assert release.execute(f"UPDATE {table} SET {column} = ? WHERE {row}", new) == 1
    if column in FREE["candidate parent" if row == "id = 'parent'" else table]:
        assert release.pull().data == release.best
    else:
        assert release.refusal() is OTHER_CODES.get((table, column),
                                                    PullRefusal.STATEMENT_MISMATCH)


@pytest.mark.parametrize(("table", "row"), [(t, row) for t, rows in BEST.items() for row in rows])
def test_every_row_that_is_taken_away(release: Release, table: str, row: str) -> None:
    """Taking away what vouches for the best one leaves the second, and says so."""
    assert release.execute(f"DELETE FROM {table} WHERE {row}") >= 1
    if table in ("statement", "signature"):
        found = release.pull()
        assert found.data == release.second
        [skipped] = found.skipped
        assert skipped.code is {"statement": PullRefusal.NO_STATEMENT,
                                "signature": PullRefusal.UNSIGNED}[table]
    else:
        assert release.refusal() is PullRefusal.STATEMENT_MISMATCH


@pytest.mark.parametrize("statement", [
    "UPDATE replacement SET speedup = 9 WHERE candidate_id = 'second'",
    "UPDATE replacement SET speedup = 1.01 WHERE candidate_id = 'best'",
    "UPDATE second_timing SET confirmed = 0",
    "UPDATE replacement SET timing_source = 'modelled' WHERE candidate_id = 'best'",
    "UPDATE replacement SET kernel = 'other' WHERE candidate_id = 'best'",
    "DELETE FROM judgement WHERE candidate_id = 'best'",
])
def test_nobody_chooses_another_one_by_damage(release: Release, statement: str) -> None:
    """The second one is in order in most of these, and yet it is not handed out."""
    release.execute(statement)
    assert release.refusal() is PullRefusal.STATEMENT_MISMATCH


@pytest.mark.parametrize("damage", ["torn", "gone", "other", "flipped", "grown"])
@pytest.mark.parametrize("which", ["object", "original", "statement"])
def test_damaged_blobs(release: Release, which: str, damage: str) -> None:
    sha256 = {
        "object": release.value("SELECT object_sha256 FROM replacement "
                                "WHERE candidate_id = 'best'"),
        "original": release.original,
        "statement": release.value("SELECT statement_sha256 FROM statement "
                                   "WHERE candidate_id = 'best'"),
    }[which]
    file = release.blob(sha256)
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        other = next(p for p in release.path.glob("blobs/*/*.zst") if p != file)
        middle = len(data) // 2
        file.write_bytes({
            "torn": data[:-3], "other": other.read_bytes(), "grown": data + data,
            "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1:]}[damage])
    assert release.refusal() is (PullRefusal.STATEMENT_MISMATCH if which == "statement"
                                 else PullRefusal.BLOB_CORRUPT)


def test_an_original_that_is_at_hand_needs_no_blob(release: Release, original: CodeObject,
                                                   tmp_path: Path) -> None:
    release.blob(release.original).unlink()
    (tmp_path / "original.co").write_bytes(original.data)
    registry = Registry(release.path)
    found = pull(registry, original=tmp_path / "original.co", trust=release.trust)
    assert found.data == release.best
    registry.close()


def test_whoever_restates_what_he_changed_has_no_key(release: Release) -> None:
    """Everything but the signature can be made to fit."""
    from asmevo.registry.signing.statement import issue

    release.execute("UPDATE replacement SET speedup = 9 WHERE candidate_id = 'second'")
    registry = Registry(release.path)
    with registry._database.write() as session:
        issue(session, "second", registry._blobs)
    assert registry.replacements()[0].speedup == 9
    registry.close()
    assert release.refusal() is PullRefusal.SIGNATURE_INVALID
    release.execute("DELETE FROM signature WHERE candidate_id = 'second'")
    found = release.pull()
    assert found.data == release.best
    assert [s.code for s in found.skipped] == [PullRefusal.UNSIGNED]


def test_the_signature_of_another_replacement(release: Release) -> None:
    for column in ("signature", "statement_sha256"):
        release.execute(f"UPDATE signature SET {column} = (SELECT {column} FROM signature WHERE "
                        "candidate_id = 'second') WHERE candidate_id = 'best'")
    assert release.refusal() is PullRefusal.SIGNATURE_INVALID


def test_more_signatures_than_anybody_makes(release: Release) -> None:
    release.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 257) "
        "INSERT INTO signature (candidate_id, public_key, statement_sha256, signature, created, "
        "digest) SELECT candidate_id, printf('%064x', i), statement_sha256, signature, created, "
        "digest FROM signature, n WHERE candidate_id = 'best'")
    assert release.refusal() is PullRefusal.SIGNATURE_INVALID


def _signed_rows(release: Release) -> list[tuple[str, tuple[Any, ...]]]:
    with closing(sqlite3.connect(release.path / "asmevo.db")) as connection:
        return [(table, row) for table in ("statement", "signature", "second_timing")
                for row in connection.execute(
                    f"SELECT * FROM {table} WHERE candidate_id = 'best'")]


def _put_back(release: Release, rows: list[tuple[str, tuple[Any, ...]]],
              tables: tuple[str, ...]) -> None:
    for table in tables:
        release.execute(f"DELETE FROM {table} WHERE candidate_id = 'best'")
    for table, row in rows:
        if table in tables:
            release.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)


def _withdraw(release: Release, key: Path) -> None:
    registry = Registry(release.path, signing_key=key)
    registry.record_second_timing("best", 0.9, PASS, confirmed=False)
    registry.close()


def test_a_withdrawal_is_signed_too(release: Release) -> None:
    key = release.trust.with_suffix("")
    rows = _signed_rows(release)
    _withdraw(release, key)
    found = release.pull()
    assert (found.data, found.skipped[0].code) == (release.second, PullRefusal.WITHDRAWN)
    # The old statement and its signature alone contradict the rows ...
    _put_back(release, rows, ("statement", "signature"))
    assert release.refusal() is PullRefusal.STATEMENT_MISMATCH
    # ... and with the old second timing as well all is as it was before: nothing in one registry
    # can tell an old state of it from the newest.
    _put_back(release, rows, ("second_timing",))
    assert release.pull().data == release.best


def test_only_a_confirmed_state_can_be_put_back_under_the_policy(release: Release) -> None:
    """Whoever goes back to before the first second timing gains nothing from `Policy.CONFIRMED`."""
    key = release.trust.with_suffix("")
    release.execute("DELETE FROM second_timing")
    registry = Registry(release.path, signing_key=key)
    with registry._database.write() as session:
        registry._issuer.issue(session, "best")
    registry.close()
    committed = _signed_rows(release)
    _withdraw(release, key)
    _put_back(release, committed, ("statement", "signature", "second_timing"))
    assert release.pull().data == release.best
    assert release.refusal(policy="confirmed") is PullRefusal.NOT_CONFIRMED


def _outcome(release: Release, allowed: Callable[[Replacement], bool]) -> None:
    """Either an error in one sentence, or one of the two objects as they were signed."""
    refused = ""
    try:
        found = release.pull()
    except AsmEvoError as error:
        refused = str(error)
    if refused:
        assert "\n" not in refused
        return
    assert found.data in (release.best, release.second)
    assert found.signers == (release.public_key,)
    assert allowed(found)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2**63, 2**63 - 1), st.floats(),
                    st.text(max_size=70), st.binary(max_size=70),
                    st.sampled_from(["best", "second", "parent", "[]", "{}", "null", "pass", "G2"]))
ALMOST = settings(deadline=None, max_examples=40,
                  suppress_health_check=[HealthCheck.function_scoped_fixture])


@ALMOST
@given(table=st.sampled_from(sorted(BEST)), data=st.data(), value=SCALARS)
def test_any_value_in_any_column(pristine: Release, tmp_path_factory: pytest.TempPathFactory,
                                 table: str, data: st.DataObject, value: object) -> None:
    column = data.draw(st.sampled_from(
        [c.name for c in Table.metadata.tables[table].columns]))
    release = pristine.copy(tmp_path_factory.mktemp("changed") / "registry")
    row = data.draw(st.sampled_from(BEST[table]))
    # A unique column, one that may not be null, or no text: then nothing was changed.
    with suppress(sqlite3.IntegrityError, UnicodeEncodeError):
        release.execute(f"UPDATE {table} SET {column} = ? WHERE {row}", value)
    _outcome(release, lambda found: found.data == release.best or bool(found.skipped))
    shutil.rmtree(release.path)


@ALMOST
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4))
def test_any_byte_of_any_file(pristine: Release, tmp_path_factory: pytest.TempPathFactory,
                              seed: int, count: int) -> None:
    release = pristine.copy(tmp_path_factory.mktemp("flipped") / "registry")
    chosen = random.Random(seed)
    files = sorted(p for p in release.path.rglob("*") if p.is_file() and p.stat().st_size)
    database = release.path / "asmevo.db"
    for _ in range(count):
        file = chosen.choice([database, *files])
        content = bytearray(file.read_bytes())
        content[chosen.randrange(len(content))] ^= chosen.randrange(1, 256)
        file.write_bytes(content)
    _outcome(release, lambda found: True)
    shutil.rmtree(release.path)
