"""Opening, creating and sharing the database, and everything that can go wrong with it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event

import asmevo
from asmevo.registry.database.models import SCHEMA_VERSION
from asmevo.registry.errors import RegistryError
from asmevo.registry.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.registry.conftest import Scene

WRITER = Path(__file__).with_name("writer.py")
# A child imports the same AsmEvo as the test, installed or not.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(asmevo.__file__).parents[1])}


def names(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


def pragma(file: Path, name: str) -> object:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


def start(registry: Registry, *, seed: int = 0) -> str:
    return registry.start_run(task="t", config="", seed=seed, toolchain={}, device="d",
                              device_source="modelled")


def test_reading_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="no registry at"):
        Registry(tmp_path / "none").runs()
    assert names(tmp_path) == set()
    assert Registry(tmp_path / "none").path.is_absolute()


def test_new_database(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "a" / "b #?%20 ü")
    registry.check_writable()
    assert registry.runs() == ()
    registry.close()
    assert names(registry.path) == {"asmevo.db", "blobs"}
    assert pragma(registry.path / "asmevo.db", "journal_mode") == "wal"
    with closing(sqlite3.connect(registry.path / "asmevo.db")) as connection:
        assert connection.execute("SELECT version FROM registry_schema").fetchall() == [
            (SCHEMA_VERSION,)]


def test_connections_enforce_foreign_keys_and_durability(registry: Registry) -> None:
    start(registry)
    with registry._database.read() as session:
        connection = session.connection()
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 5000


def test_database_elsewhere(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r", f"sqlite:///{tmp_path}/other.db")
    start(registry)
    registry.close()
    assert (tmp_path / "other.db").is_file()
    assert not (tmp_path / "r" / "asmevo.db").exists()


@pytest.mark.parametrize(("url", "reason"), [
    ("mysql://u:secret@host/db", "'mysql' are not supported; tested are sqlite.* and postgresql"),
    ("postgresql+asyncpg://u:secret@host/db", r"'postgresql\+asyncpg' are not supported"),
    ("postgresql://u:secret@host:port/db", "not a database URL"),
    ("sqlite://", "plain file"), ("sqlite:///:memory:", "plain file"),
    ("sqlite:///file:x?uri=true", "plain file"), ("secret", "not a database URL"),
])
def test_other_urls_are_refused(tmp_path: Path, url: str, reason: str) -> None:
    with pytest.raises(RegistryError, match=reason) as caught:
        Registry(tmp_path, url)
    assert "secret" not in str(caught.value)


def test_path_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        for action in (Registry(path).check_writable, lambda p=path: start(Registry(p))):
            with pytest.raises(RegistryError, match=r"is in the way|not a folder"):
                action()
    assert (tmp_path / "file").read_text() == "x"


def test_folder_that_the_system_keeps(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="cannot write to registry folder /proc/asmevo"):
        Registry("/proc/asmevo").check_writable()


def test_read_only_folder(scene: Scene, open_path: Path,
                          as_user: Callable[[], AbstractContextManager[None]]) -> None:
    """Reading works, writing is refused, and neither leaves anything behind."""
    replacement = scene.commit("c1", number=1)
    scene.registry.close()
    folder = open_path / "r"
    shutil.copytree(scene.registry.path, folder)
    before = names(folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    registry = Registry(folder)
    with as_user():
        assert registry.replacements() == (replacement,)
        assert registry.load_object(replacement.object_sha256) == scene.variant(1).data
        with pytest.raises(RegistryError, match="permission denied"):
            registry.check_writable()
        with pytest.raises(RegistryError, match="is read-only"):
            registry.finish_run(scene.run_id, registry.run(scene.run_id).status)
        with pytest.raises(RegistryError, match="permission denied"):
            Registry(folder / "new").check_writable()
    registry.close()
    assert names(folder) == before


def test_unreadable_folder(open_path: Path,
                           as_user: Callable[[], AbstractContextManager[None]]) -> None:
    (open_path / "secret" / "r").mkdir(parents=True)
    (open_path / "secret").chmod(0)
    registry = Registry(open_path / "secret" / "r")
    with as_user():
        for action in (registry.runs, registry.check_writable, lambda: start(registry)):
            with pytest.raises(RegistryError, match="permission denied"):
                action()
    (open_path / "secret").chmod(0o700)


def test_locked_database(registry: Registry) -> None:
    start(registry)
    hasty = Registry(registry.path, busy_timeout_s=0.05)
    with closing(sqlite3.connect(registry.path / "asmevo.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for action in (hasty.check_writable, lambda: start(hasty)):
            with pytest.raises(RegistryError, match=r"locked by another process for 0\.05 s"):
                action()
        assert len(hasty.runs()) == 1  # a reader does not wait for a writer
        other.execute("ROLLBACK")
    start(hasty)
    hasty.close()


@pytest.mark.parametrize("content", [b"", b"not a database" * 100])
def test_file_that_is_no_registry(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "asmevo.db").write_bytes(content)
    for action in (Registry(tmp_path).check_writable, Registry(tmp_path).runs):
        with pytest.raises(RegistryError, match=r"not an (AsmEvo registry|SQLite file)"):
            action()
    assert (tmp_path / "asmevo.db").read_bytes() == content


def test_foreign_sqlite_file(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "asmevo.db")) as connection:
        connection.execute("CREATE TABLE cookies (x)")
    with pytest.raises(RegistryError, match="is not an AsmEvo registry"):
        Registry(tmp_path).check_writable()


def test_corrupt_database(registry: Registry) -> None:
    for seed in range(50):
        start(registry, seed=seed)
    registry.close()
    file = registry.path / "asmevo.db"
    data = bytearray(file.read_bytes())
    size = 4096
    for page in range(2, len(data) // size):
        data[page * size:page * size + 200] = b"\xa5" * 200
    file.write_bytes(data)
    with pytest.raises(RegistryError, match="corrupt"):
        Registry(registry.path).check_writable()


@pytest.mark.parametrize("change", [
    f"UPDATE registry_schema SET version = {SCHEMA_VERSION + 1}",
    "UPDATE registry_schema SET version = 0",
    "DELETE FROM registry_schema",
    "INSERT INTO registry_schema SELECT digest, 2, version, created FROM registry_schema",
])
def test_other_schema_is_refused(registry: Registry, change: str) -> None:
    start(registry)
    registry.close()
    with closing(sqlite3.connect(registry.path / "asmevo.db")) as connection:
        connection.execute(change)
        connection.commit()
    for action in (registry.check_writable, registry.runs):
        with pytest.raises(RegistryError, match="has schema version"):
            action()


def test_full_disk_keeps_what_was_committed(scene: Scene) -> None:
    """SQLite's own SQLITE_FULL, brought about by a limit on the number of pages."""
    scene.commit("c1", number=1)
    engine = scene.registry._database._opened(create=False)
    engine.dispose()

    @event.listens_for(engine, "connect")
    def limit(connection: sqlite3.Connection, record: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # clamped to the current size

    def fill() -> None:
        for number in range(2, 200):
            scene.registry.record_candidate(scene.candidate(f"c{number}"))

    with pytest.raises(RegistryError, match="the disk is full"):
        fill()
    scene.registry.close()
    lineage = scene.registry.lineage(scene.run_id)
    assert lineage[0].id == "c1"
    assert all(len(c.verdicts) == 7 and len(c.timings) == 1 for c in lineage)
    assert pragma(scene.registry.path / "asmevo.db", "integrity_check") == "ok"


def run_writer(registry: Registry, scene: Scene, worker: int,
               count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(registry.path), scene.run_id, scene.original.sha256,
         scene.kernel, scene.dispatch.sha256, str(worker), str(count)],
        stdout=subprocess.PIPE, env=ENVIRONMENT)


def test_concurrent_writers_lose_nothing(scene: Scene) -> None:
    writers = [run_writer(scene.registry, scene, worker, 25) for worker in range(4)]
    assert [w.wait(timeout=120) for w in writers] == [0] * 4
    for writer in writers:
        writer.communicate()
    lineage = scene.registry.lineage(scene.run_id)
    assert {c.id for c in lineage} == {f"w{w}-{n}" for w in range(4) for n in range(25)}
    for candidate in lineage:
        assert len(candidate.verdicts) == 7
        assert candidate.assembly_sha256 is not None
        assert scene.registry.load_text(candidate.assembly_sha256) == f"; {candidate.id}\n" * 50
    assert len(scene.registry.replacements()) == 4


def test_concurrent_creation(tmp_path: Path) -> None:
    code = ("import sys; from asmevo.registry.registry import Registry\n"
            "r = Registry(sys.argv[1]); r.check_writable()\n"
            "r.start_run(task='t', config='', seed=0, toolchain={}, device='d',"
            " device_source='modelled')")
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "r")],
                                  env=ENVIRONMENT) for _ in range(4)]
    assert [p.wait(timeout=120) for p in processes] == [0] * 4
    registry = Registry(tmp_path / "r")
    assert len(registry.runs()) == 4
    registry.close()
    assert names(tmp_path / "r") - {"blobs"} == {
        "asmevo.db", *(n for n in names(tmp_path / "r") if n.startswith("blobs/"))}


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.025, 0.05, 0.1])
def test_killed_writer_leaves_a_consistent_registry(scene: Scene, delay: float) -> None:
    writer = run_writer(scene.registry, scene, 0, 100_000)
    assert writer.stdout is not None
    acknowledged = [writer.stdout.readline() for _ in range(3)]
    time.sleep(delay)
    writer.send_signal(signal.SIGKILL)
    acknowledged += writer.stdout.read().splitlines(keepends=True)
    writer.wait()
    # The last line may be cut in the middle; every complete one tells of a finished transaction.
    expected = {line.decode().strip() for line in acknowledged if line.endswith(b"\n")}

    scene.registry.check_writable()
    lineage = scene.registry.lineage(scene.run_id)
    assert len(expected) >= 3
    assert expected <= {c.id for c in lineage}
    for candidate in lineage:
        assert len(candidate.verdicts) == 7
        assert len(candidate.timings) == 1
        assert candidate.assembly_sha256 is not None
        scene.registry.load_text(candidate.assembly_sha256)
    scene.registry.close()
    file = scene.registry.path / "asmevo.db"
    assert pragma(file, "integrity_check") == "ok"
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize(("table", "column"), [("run", "started"), ("run", "toolchain")])
def test_a_value_of_another_type_than_its_column(tmp_path: Path, table: str, column: str) -> None:
    registry = Registry(tmp_path)
    start(registry)
    with closing(sqlite3.connect(tmp_path / "asmevo.db")) as connection, connection:
        connection.execute(f"UPDATE {table} SET {column} = 7")
    with pytest.raises(RegistryError, match="holds a malformed row"):
        registry.runs()
