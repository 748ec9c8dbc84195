"""A PostgreSQL server of the tests' own, in a temporary folder. No other server is touched."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

PASSWORD = "correct horse"  # of the one user; needed over TCP, not over the socket
USER = "asmevo"
_OPTIONS = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_connections=60",
            "shared_buffers=32MB", "autovacuum=off", "logging_collector=off", "timezone=UTC")


@dataclass
class Server:
    """A running server; ``folder`` has its socket."""

    folder: Path
    port: int
    _count: int = field(default=0)
    shared: str | None = field(default=None)

    def url(self, database: str, *, tcp: bool = False, user: str = USER,
            password: str = PASSWORD) -> str:
        """The URL of a database, over the socket or over TCP."""
        if tcp:
            login = f"{user}:{password.replace(' ', '%20')}"
            return f"postgresql+psycopg://{login}@127.0.0.1:{self.port}/{database}"
        return f"postgresql+psycopg://{user}@/{database}?host={self.folder}&port={self.port}"

    def clean_database(self) -> str:
        """Make the database ``shared`` hold nothing, or a registry without records.

        One for all tests that run one after the other: to make one takes as long as to use it.
        """
        if self.shared is None:
            self.shared = self.new_database()
        names = [str(name) for [name] in self.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN "
            "('registry_schema', 'alembic_version')", self.shared)]
        if names:
            self.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY", self.shared)
        return self.shared

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement past the registry."""
        with psycopg.connect(host=str(self.folder), port=self.port, user=USER, dbname=database,
                             autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def new_database(self) -> str:
        """The name of an empty database."""
        self._count += 1
        name = f"test{self._count}"
        self.execute(f"CREATE DATABASE {name}")
        return name


def find_programs() -> Path:
    """The folder of ``postgres`` and ``initdb``; skips the test where there is none."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)  # Debian's place
    if config := shutil.which("pg_config"):
        folders.append(Path(subprocess.run([config, "--bindir"], capture_output=True, text=True,
                                           check=True).stdout.strip()))
    for folder in folders:
        if (folder / "postgres").is_file() and (folder / "initdb").is_file():
            # Debian's are links into the folder that has the others as well.
            return (folder / "postgres").resolve().parent
    pytest.skip("no PostgreSQL server: 'postgres' and 'initdb' are neither on PATH nor below "
                "/usr/lib/postgresql (Debian: apt-get install postgresql)")


def _account() -> dict[str, Any]:
    """How to start programs that refuse to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    pytest.skip("PostgreSQL does not run as root, and there is neither a user 'postgres' nor "
                "'nobody' to run it as")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_server(*options: str) -> Iterator[Server]:
    """A server with one superuser `USER`, gone without a trace at the end.

    It is in a hurry and would not survive a power failure, unless ``options`` say otherwise.
    """
    programs, account = find_programs(), _account()
    # Not pytest's folder: a socket's path may have 107 bytes, and the server is another user.
    folder = Path(tempfile.mkdtemp(prefix="asmevo-pg-", dir="/tmp"))
    password = folder / "password"
    password.write_text(PASSWORD)
    if account:
        for path in (folder, password):
            os.chown(path, account["user"], account["group"])
    settings = {"cwd": folder, "env": {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, **account}
    try:
        subprocess.run(
            [programs / "initdb", "--pgdata", folder / "data", "--username", USER, "--pwfile",
             password, "--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8",
             "--locale=C", "--no-sync"],
            check=True, stdout=subprocess.DEVNULL, **settings)
        port = _free_port()
        settled = [word for option in (*_OPTIONS, *options) for word in ("-c", option)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", folder / "data", "-k", folder, "-p", str(port),
                 "-h", "127.0.0.1", *settled], stdout=log, stderr=log, **settings)
        try:
            server = Server(folder, port)
            _await(server, process)
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)  # "immediate shutdown": nothing is to be kept
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await(server: Server, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            server.execute("SELECT 1")
        except psycopg.OperationalError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
        else:
            return
    log = (server.folder / "log").read_text(errors="replace")
    raise RuntimeError(f"the PostgreSQL server did not start:\n{log}")
