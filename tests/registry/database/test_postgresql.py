"""What a real PostgreSQL server does differently: creation, locks, and everything that fails."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from asmevo.registry.database.backend import backend as backend_of
from asmevo.registry.database.migrations import revision
from asmevo.registry.database.models import SCHEMA_VERSION
from asmevo.registry.errors import RegistryError, RegistryMissingError
from asmevo.registry.records import RunStatus
from asmevo.registry.registry import Registry
from tests.registry.database.test_database import ENVIRONMENT, WRITER, start
from tests.registry.postgresql import PASSWORD, USER
from tests.registry.tampering import count, execute

if TYPE_CHECKING:
    from tests.registry.conftest import Scene
    from tests.registry.postgresql import Server

BACKENDS = ("postgresql",)


@pytest.fixture
def url(postgresql: Server) -> str:
    """The URL of a database without a registry."""
    return postgresql.url(postgresql.new_database())


@pytest.fixture
def shared(postgresql: Server, registry: Registry) -> str:
    """The URL of the database of ``registry``."""
    assert postgresql.shared is not None
    return postgresql.url(postgresql.shared)


@pytest.fixture
def guest(postgresql: Server) -> Iterator[str]:
    """A user who may read all tables."""
    postgresql.execute("CREATE ROLE guest LOGIN IN ROLE pg_read_all_data")
    yield "guest"
    postgresql.execute("DROP OWNED BY guest")
    postgresql.execute("DROP ROLE guest")


def test_reading_creates_nothing(tmp_path: Path, url: str) -> None:
    registry = Registry(tmp_path / "r", url)
    with pytest.raises(RegistryMissingError, match=r"^no registry at postgresql://asmevo@"):
        registry.runs()
    assert registry.captures() == ()
    registry.check_writable()
    assert registry.runs() == ()
    registry.close()


def test_connections(registry: Registry, shared: str) -> None:
    start(registry)
    with registry._database.read() as session:
        ask = session.connection().exec_driver_sql
        assert ask("SHOW transaction_isolation").scalar() == "repeatable read"
        assert ask("SHOW application_name").scalar() == "asmevo"
    for relaxed in (False, True, False):
        with registry._database.write(relaxed=relaxed) as session:
            ask = session.connection().exec_driver_sql
            assert ask("SHOW transaction_isolation").scalar() == "read committed"
            assert ask("SHOW lock_timeout").scalar() == "5s"


def test_a_relaxed_write_does_not_wait_for_the_disk(tmp_path: Path, postgresql: Server) -> None:
    name = postgresql.new_database()
    postgresql.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    registry = Registry(tmp_path / "r", postgresql.url(name))
    for relaxed, expected in ((False, "on"), (True, "off"), (False, "on")):
        with registry._database.write(relaxed=relaxed) as session:
            found = session.connection().exec_driver_sql("SHOW synchronous_commit").scalar()
        assert found == expected
    registry.close()


def test_a_reader_sees_one_snapshot_and_waits_for_nobody(registry: Registry, shared: str) -> None:
    start(registry)
    other = Registry(registry.path, shared, busy_timeout_s=0.1)
    with registry._database.read() as session:
        ask = session.connection().exec_driver_sql
        assert ask("SELECT count(*) FROM run").scalar() == 1
        with other._database.write() as writing:
            writing.connection().exec_driver_sql("UPDATE run SET seed = 5")
            assert ask("SELECT seed FROM run").scalar() == 0
        start(other)
        assert ask("SELECT count(*) FROM run").scalar() == 1
    assert len(registry.runs()) == 2
    other.close()


def test_locked(registry: Registry, shared: str) -> None:
    start(registry)
    hasty = Registry(registry.path, shared, busy_timeout_s=0.05)
    with registry._database.write() as session:
        session.connection()
        for action in (hasty.check_writable, lambda: start(hasty)):
            with pytest.raises(RegistryError, match=r"locked by another process for 0\.05 s"):
                action()
        assert len(hasty.runs()) == 1
    start(hasty)
    hasty.close()


def test_what_was_read_cannot_change_before_it_is_written(registry: Registry, shared: str) -> None:
    """Read, modify, write from many threads, each over its own connection."""
    run_id = start(registry)

    def add() -> None:
        other = Registry(registry.path, shared, busy_timeout_s=60)
        for _ in range(20):
            with other._database.write() as session:
                ask = session.connection().exec_driver_sql
                seed = ask("SELECT seed FROM run").scalar_one()
                ask(f"UPDATE run SET seed = {int(seed) + 1}")
        other.close()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert registry.run(run_id).seed == 80


def test_wide_numbers_and_odd_text(registry: Registry) -> None:
    run_id = start(registry, seed=1 << 62)
    assert registry.run(run_id).seed == 1 << 62
    registry.record_search(run_id, [{"number": 0, "kind": "k", "text": "\0 ü \U0001f600"}])
    assert registry.search_events(run_id)[0]["text"] == "\0 ü \U0001f600"
    for device in ("\0", "\ud800"):
        with pytest.raises(RegistryError, match="refuses the record"):
            registry.start_run(task="t", config="", seed=0, toolchain={}, device=device,
                               device_source="modelled")
    with pytest.raises(RegistryError, match="refuses the record"):
        start(registry, seed=1 << 63)
    assert count(registry, "run") == 1


def test_foreign_database(tmp_path: Path, postgresql: Server) -> None:
    name = postgresql.new_database()
    registry = Registry(tmp_path / "r", postgresql.url(name))
    postgresql.execute("CREATE TABLE run (x int)", name)
    with pytest.raises(RegistryError, match="not an AsmEvo registry, and it has a table 'run'"):
        registry.check_writable()
    postgresql.execute("ALTER TABLE run RENAME TO other", name)
    registry.check_writable()  # it may live beside tables of others
    registry.close()


@pytest.mark.parametrize("change", [
    f"UPDATE registry_schema SET version = {SCHEMA_VERSION + 1}", "DELETE FROM registry_schema"])
def test_other_schema_is_refused(tmp_path: Path, postgresql: Server, change: str) -> None:
    name = postgresql.new_database()
    registry = Registry(tmp_path / "r", postgresql.url(name))
    registry.check_writable()
    registry.close()
    postgresql.execute(change, name)
    for action in (registry.check_writable, registry.runs):
        with pytest.raises(RegistryError, match=r"postgresql://.* has schema version"):
            action()


def test_concurrent_creation(tmp_path: Path, url: str) -> None:
    code = ("import sys; from asmevo.registry.registry import Registry\n"
            "r = Registry(sys.argv[1], sys.argv[2]); sys.stdin.readline(); r.check_writable()\n"
            "r.start_run(task='t', config='', seed=0, toolchain={}, device='d',"
            " device_source='modelled')")
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "r"), url],
                                  env=ENVIRONMENT, stdin=subprocess.PIPE, text=True)
                 for _ in range(3)]
    for process in processes:
        process.communicate("\n", timeout=120)
    assert [p.returncode for p in processes] == [0] * 3
    registry = Registry(tmp_path / "r", url)
    assert len(registry.runs()) == 3
    registry.close()


def test_killed_writer_leaves_a_consistent_registry(scene: Scene, shared: str) -> None:
    registry = scene.registry
    writer = subprocess.Popen(
        [sys.executable, str(WRITER), str(registry.path), scene.run_id, scene.original.sha256,
         scene.kernel, scene.dispatch.sha256, "0", "100000", shared],
        stdout=subprocess.PIPE, env=ENVIRONMENT)
    assert writer.stdout is not None
    acknowledged = [writer.stdout.readline() for _ in range(3)]
    time.sleep(0.03)
    writer.send_signal(signal.SIGKILL)
    acknowledged += writer.stdout.read().splitlines(keepends=True)
    writer.wait()
    expected = {line.decode().strip() for line in acknowledged if line.endswith(b"\n")}
    registry.check_writable()  # the server gives the dead writer's lock back
    lineage = registry.lineage(scene.run_id)
    assert expected <= {c.id for c in lineage}
    assert all(len(c.verdicts) == 7 and len(c.timings) == 1 for c in lineage)


def test_a_fork_keeps_its_parents_connection(registry: Registry, shared: str) -> None:
    start(registry)
    with registry._database.read() as session:
        pid = os.fork()
        if pid == 0:
            try:
                start(registry)
                registry.close()
            finally:
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert session.connection().exec_driver_sql("SELECT 1").scalar() == 1
    assert len(registry.runs()) == 2


def test_a_restarted_server_costs_one_connection(registry: Registry, postgresql: Server) -> None:
    run_id = start(registry)
    postgresql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                       "WHERE application_name = 'asmevo'")
    registry.finish_run(run_id, RunStatus.COMPLETED)

    def interrupted() -> None:
        with registry._database.write() as session:
            session.connection().exec_driver_sql("UPDATE run SET seed = 7")
            postgresql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                               "WHERE application_name = 'asmevo'")

    with pytest.raises(RegistryError, match=r"closed the connection|is shutting down"):
        interrupted()
    assert registry.run(run_id).seed == 0


@pytest.mark.parametrize(("code", "reason"), [
    ("disk_full", "cannot grow: the server's disk is full"),
    ("out_of_memory", "the server is out of memory"),
    ("data_corrupted", "is corrupt: injected"),
    ("query_canceled", "failed: injected"),
])
def test_a_failing_server(registry: Registry, code: str, reason: str) -> None:
    """PostgreSQL's own errors, raised where a row is written; nothing is left of the record."""
    execute(registry, "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                      f"RAISE EXCEPTION 'injected' USING ERRCODE = '{code}'; END $$")
    execute(registry, "CREATE TRIGGER fail BEFORE INSERT ON run EXECUTE FUNCTION fail()")
    try:
        with pytest.raises(RegistryError, match=reason) as caught:
            start(registry)
        assert "\n" not in str(caught.value)
        assert count(registry, "run") == 0
    finally:
        execute(registry, "DROP FUNCTION fail() CASCADE")


def test_a_user_who_may_only_read(registry: Registry, shared: str, guest: str) -> None:
    run_id = start(registry)
    reader = Registry(registry.path, shared.replace(f"{USER}@", f"{guest}@"))
    assert reader.run(run_id).id == run_id
    for action in (reader.check_writable, lambda: reader.finish_run(run_id, RunStatus.FAILED)):
        with pytest.raises(RegistryError, match="does not allow that: permission denied for"):
            action()
    execute(registry, "UPDATE registry_schema SET version = 5")
    execute(registry, "UPDATE alembic_version SET version_num = '0005'")
    reader.close()
    try:
        with pytest.raises(RegistryError, match="has schema version 5, which has to be brought"):
            reader.runs()
    finally:
        execute(registry, f"UPDATE registry_schema SET version = {SCHEMA_VERSION}")
        execute(registry, "UPDATE alembic_version SET version_num = :name",
                name=revision(SCHEMA_VERSION))
        reader.close()


def test_a_read_only_database(tmp_path: Path, postgresql: Server) -> None:
    name = postgresql.new_database()
    registry = Registry(tmp_path / "r", postgresql.url(name))
    start(registry)
    registry.close()
    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert len(registry.runs()) == 1
    with pytest.raises(RegistryError, match=r"is read-only$"):
        start(registry)
    registry.close()


def test_unreachable(tmp_path: Path, postgresql: Server) -> None:
    name = postgresql.clean_database()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = probe.getsockname()[1]
        there, port = postgresql.url(name, tcp=True), str(postgresql.port)
        for url, reason in (
            (there.replace(port, str(nobody)), "cannot be reached: no server listens there"),
            (postgresql.url(name).replace(port, "1"), "cannot be reached: no server listens"),
            (there.replace("127.0.0.1", "no-such-host.invalid"), "cannot be reached: unknown"),
            (postgresql.url(name, tcp=True, password="wrong"),
             'refuses the password of user "asmevo"'),
            (postgresql.url("none", tcp=True), 'the server has no database "none"'),
            (postgresql.url(name, user="nobody"), 'has no user "nobody"'),
            (f"{there}?password=secret&nonsense=1", "failed: invalid connection option"),
        ):
            registry = Registry(tmp_path / "r", url)
            for action in (registry.runs, registry.check_writable, registry.captures):
                with pytest.raises(RegistryError) as caught:
                    action()
                message = str(caught.value)
                assert reason in message
                assert message.startswith("registry database postgresql://")
                assert "\n" not in message
                for password in (PASSWORD, PASSWORD.replace(" ", "%20"), "wrong", "secret"):
                    assert password not in message


def test_a_host_that_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/d?connect_timeout=2"
        with pytest.raises(RegistryError, match="cannot be reached: no answer in time"):
            Registry(tmp_path, url).runs()


def test_over_tcp_with_a_password(tmp_path: Path, postgresql: Server) -> None:
    url = postgresql.url(postgresql.new_database(), tcp=True)
    registry = Registry(tmp_path / "r", url.replace("+psycopg", ""))
    start(registry)
    assert registry._database.place == (
        f"postgresql://{USER}@127.0.0.1:{postgresql.port}/{sa.make_url(url).database}")
    assert PASSWORD not in repr(registry)
    registry.close()


def test_without_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    database = backend_of(tmp_path, "postgresql://u@h/d", busy_timeout_s=1)
    with pytest.raises(RegistryError, match=r"pip install 'asmevo\[postgresql\]'"):
        database.engine(create=False)
