"""Registries of older schemas, as the code of their time wrote them, come up to date whole."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlmodel import Session, select

from asmevo.registry.database import migrations
from asmevo.registry.database.layout import lay_out
from asmevo.registry.database.migrations import OLDEST, current, upgrade
from asmevo.registry.database.models import SCHEMA_VERSION, Table
from asmevo.registry.database.row_digest import row_digest
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import CandidateStatus, RunStatus
from asmevo.registry.registry import Registry
from tests.registry.database.test_database import ENVIRONMENT

if TYPE_CHECKING:
    from tests.registry.postgresql import Server

SCHEMAS = Path(__file__).with_name("schemas")
DUMPS = sorted(path.stem for path in SCHEMAS.glob("*.sql"))
MODELS = {mapper.local_table.name: mapper.class_
          for model in Table.__subclasses__() for mapper in [sa.inspect(model)]}


def restore(name: str, folder: Path) -> Path:
    """The database of a dump, where a registry's is."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "asmevo.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript((SCHEMAS / f"{name}.sql").read_text())
    return folder


def contents(file: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, without their digests and the version of the schema."""
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        tables = [name for [name] in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'") if name != "alembic_version"]
        rows = {table: [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
                for table in tables}
    for row in (row for table in rows.values() for row in table):
        row.pop("digest", None)
    for row in rows["registry_schema"]:
        row.pop("version")
    return {table: found for table, found in rows.items() if found}


def wrong_digests(session: Session) -> list[Table]:
    rows = [row for model in MODELS.values() for row in session.exec(select(model))]
    assert rows
    return [row for row in rows if row.digest != row_digest(row)]


def differences(connection: sa.Connection) -> list[Any]:
    """What Alembic would still change, and the names of checks, which it does not look at."""
    context = MigrationContext.configure(
        connection, opts={"compare_type": True, "compare_server_default": True})
    found: list[Any] = compare_metadata(context, Table.metadata)
    inspector = sa.inspect(connection)
    for table in Table.metadata.sorted_tables:
        if found:
            break
        expected = {str(c.name) for c in table.constraints
                    if isinstance(c, sa.CheckConstraint | sa.ForeignKeyConstraint)}
        names = {str(c["name"]) for c in (*inspector.get_check_constraints(table.name),
                                          *inspector.get_foreign_keys(table.name))}
        found += sorted(expected ^ names)
    return found


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest) -> Iterator[sa.Connection]:
    """A transaction in an empty database."""
    url = "sqlite://"
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("postgresql")
        url = server.url(server.new_database())
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def test_there_is_a_dump_of_every_older_schema() -> None:
    assert {int(name.partition("-")[0]) for name in DUMPS} == set(range(OLDEST, SCHEMA_VERSION))


def test_revisions_are_one_line_that_ends_at_the_current_schema() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    revisions = [r.revision for r in ScriptDirectory.from_config(config).walk_revisions()]
    assert revisions == [migrations.revision(n) for n in range(SCHEMA_VERSION, 0, -1)]


def test_migrations_make_what_the_models_say(empty: sa.Connection) -> None:
    assert differences(empty) != []
    upgrade(empty)
    assert differences(empty) == []
    with Session(empty) as session:
        assert wrong_digests(session) == []


def test_migrations_make_the_same_checks() -> None:
    found = []
    for make in (upgrade, lay_out):
        with sa.create_engine("sqlite://").connect() as connection:
            make(connection)
            inspector = sa.inspect(connection)
            found.append({name: sorted((c["name"], c["sqltext"])
                                       for c in inspector.get_check_constraints(name))
                          for name in Table.metadata.tables})
    assert found[0] == found[1]
    assert len(found[0]["timing"]) == 2


def test_what_is_made_from_the_models_is_taken_for_current(empty: sa.Connection) -> None:
    lay_out(empty)
    assert differences(empty) == []
    upgrade(empty)
    assert current(empty) == SCHEMA_VERSION
    assert differences(empty) == []


@pytest.mark.parametrize("name", DUMPS)
def test_an_older_registry_is_brought_up_to_date(tmp_path: Path, name: str) -> None:
    """By a mere reader, with every record as it was."""
    folder = restore(name, tmp_path / "r")
    before = contents(folder / "asmevo.db")
    expected = {str(t) for t in MODELS} - {"statement", "signature"}
    schema = int(name[0])
    for table, since in (("judgement", 5), ("search_event", 4), ("second_timing", 3),
                         ("capture", 2)):
        if schema < since or (table == "second_timing" and "without" in name):
            expected.remove(table)
    assert set(before) == expected  # the dump has rows in all tables

    registry = Registry(folder)
    check_records(registry, schema, name)
    with registry._database.read() as session:
        assert wrong_digests(session) == []
        assert differences(session.connection()) == []
    registry.check_writable()
    registry.close()
    assert contents(folder / "asmevo.db") == before
    with closing(sqlite3.connect(folder / "asmevo.db")) as connection:
        assert connection.execute("SELECT version FROM registry_schema").fetchall() == [
            (SCHEMA_VERSION,)]
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [
            (migrations.revision(SCHEMA_VERSION),)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def check_records(registry: Registry, schema: int, name: str) -> None:
    """Read everything there is by the registry's own methods."""
    [run] = registry.runs()
    assert (run.status, run.seed, run.toolchain) == (
        RunStatus.COMPLETED, 1, {"assembler": "22.1"})
    candidates = {c.id: c for c in registry.lineage(run.id)}
    assert candidates["c1"].status is CandidateStatus.REJECTED
    assert candidates["c2"].status is CandidateStatus.COMMITTED
    assert candidates["c2"].parent_id == "c1"
    assert [len(candidates[n].verdicts) for n in ("c1", "c2")] == [3, 7]
    assert registry.baseline(run.id)[0].samples_us == (12.5, 13.0)
    replacement = next(r for r in registry.replacements() if r.candidate_id == "c2")
    original = registry.code_object(replacement.original_sha256)
    assert original is not None
    assert len(registry.recovered(original.sha256)) == 1
    assert (replacement.speedup, replacement.judgement) == (1.5, None)
    again = None if schema < 3 or "without" in name else 1.45
    assert (replacement.speedup_again, replacement.withdrawn) == (again, False)
    assert len(registry.captures()) == (schema >= 2)
    assert len(registry.search_events(run.id)) == (2 if schema >= 4 else 0)
    assert any(r.judgement is not None for r in registry.replacements()) == (schema >= 5)


def test_digests_are_the_same_on_postgresql(tmp_path: Path, postgresql: Server) -> None:
    """The last schema without them, its rows copied there, against the same in SQLite."""
    folder = restore("5", tmp_path / "r")
    Registry(folder).runs()
    source = sa.create_engine(f"sqlite:///{folder}/asmevo.db")
    url = postgresql.url(postgresql.new_database())
    target = sa.create_engine(url)
    with source.connect() as old, target.begin() as new:
        upgrade(new, to=5)
        new.exec_driver_sql("DELETE FROM registry_schema")
        for table in Table.metadata.sorted_tables:
            columns = [c for c in table.columns if c.name != "digest"]
            rows = [dict(row) for row in old.execute(sa.select(*columns)).mappings()]
            if table.name == "registry_schema":
                rows[0]["version"] = 5
            if rows:
                new.execute(sa.table(table.name, *(sa.column(c.name, c.type) for c in columns))
                            .insert(), rows)
    source.dispose()
    target.dispose()
    there, here = Registry(tmp_path / "there", url), Registry(folder)
    check_records(there, 5, "5")
    with there._database.read() as theirs, here._database.read() as ours:
        assert wrong_digests(theirs) == []
        for model in MODELS.values():
            assert ({row.digest for row in theirs.exec(select(model))}
                    == {row.digest for row in ours.exec(select(model))})
    there.close()
    here.close()


def test_two_processes_upgrade_at_once(tmp_path: Path) -> None:
    folder = restore("1", tmp_path / "r")
    code = ("import sys; from asmevo.registry.registry import Registry\n"
            "sys.stdin.readline(); print(len(Registry(sys.argv[1]).runs()))")
    processes = [subprocess.Popen([sys.executable, "-c", code, str(folder)], env=ENVIRONMENT,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                 for _ in range(2)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [p.communicate(timeout=120)[0].strip() for p in processes] == ["1", "1"]
    registry = Registry(folder)
    with registry._database.read() as session:
        assert wrong_digests(session) == []


def test_an_upgrade_that_fails_changes_nothing(tmp_path: Path) -> None:
    """What a row of an older registry holds may be broken, and then nothing is half done."""
    folder = restore("3", tmp_path / "r")
    with closing(sqlite3.connect(folder / "asmevo.db")) as connection:
        connection.execute("UPDATE run SET toolchain = '{'")
        connection.commit()
    before = contents(folder / "asmevo.db")
    with pytest.raises(RegistryError, match=r"asmevo\.db holds a malformed row: "):
        Registry(folder).runs()
    assert contents(folder / "asmevo.db") == before
    with closing(sqlite3.connect(folder / "asmevo.db")) as connection:
        assert connection.execute("SELECT version FROM registry_schema").fetchall() == [(3,)]
        assert connection.execute("SELECT * FROM sqlite_master WHERE name LIKE 'alembic%'"
                                  ).fetchall() == []


def test_a_registry_that_contradicts_itself(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    Registry(folder).check_writable()
    with closing(sqlite3.connect(folder / "asmevo.db")) as connection:
        connection.execute("UPDATE registry_schema SET version = 3")
        connection.commit()
    with pytest.raises(RegistryError, match="says that it has schema version 3, but its tables"):
        Registry(folder).runs()


def test_an_older_registry_that_may_not_be_written(
        tmp_path: Path, open_path: Path,
        as_user: Callable[[], AbstractContextManager[None]]) -> None:
    folder = open_path / "r"
    shutil.copytree(restore("5", tmp_path / "r"), folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    registry = Registry(folder)
    with as_user(), pytest.raises(
            RegistryError, match=r"has schema version 5, which has to be brought to version "
                                 rf"{SCHEMA_VERSION} first: any command of asmevo-registry"):
        registry.runs()
    registry.close()


def test_alembic_is_loaded_for_creation_and_upgrades_only(tmp_path: Path) -> None:
    Registry(tmp_path / "r").check_writable()
    code = ("import sys; from asmevo.registry.registry import Registry\n"
            "Registry(sys.argv[1]).runs(); print('alembic' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "r")], check=True,
                          capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout.strip() == "False"


def test_who_may_not_write_hears_of_it_before_a_revision_is_loaded(
        tmp_path: Path, open_path: Path, monkeypatch: pytest.MonkeyPatch,
        as_user: Callable[[], AbstractContextManager[None]]) -> None:
    """The revisions may lie where that user cannot read them."""
    folder = open_path / "r"
    shutil.copytree(restore("5", tmp_path / "r"), folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)

    def never(*_: object) -> None:
        raise AssertionError("a revision was loaded")

    monkeypatch.setattr("asmevo.registry.database.database.upgrade", never)
    with as_user(), pytest.raises(RegistryError, match="has schema version 5"):
        Registry(folder).runs()
