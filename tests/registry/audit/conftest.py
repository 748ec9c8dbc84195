"""A populated registry that each test may damage in its own copy."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from asmevo.registry.audit.finding import FindingCode
from asmevo.registry.audit.verify import Audit, verify
from asmevo.registry.registry import Registry
from asmevo.registry.signing.trust import load_trust
from tests.registry.populated import Populated


@dataclass
class Copy:
    """A copy of the populated registry."""

    path: Path
    registry: Registry
    populated: Populated
    trusted: Path

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement past the registry, with nothing enforced."""
        with closing(sqlite3.connect(self.path / "asmevo.db")) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("PRAGMA ignore_check_constraints = ON")
            rows = connection.execute(statement, values).fetchall()
            connection.commit()
        return rows

    def verify(self, **options: Any) -> Audit:
        return verify(self.registry, **options)

    @contextmanager
    def kept(self, table: str) -> Iterator[None]:
        """Put the rows of a table back at the end."""
        rows = self.sql(f"SELECT rowid, * FROM {table}")
        names = ", ".join(name for _, name, *_ in self.sql(f"PRAGMA table_info({table})"))
        try:
            yield
        finally:
            self.sql(f"DELETE FROM {table}")
            for row in rows:
                marks = ", ".join("?" * len(row))
                self.sql(f"INSERT INTO {table} (rowid, {names}) VALUES ({marks})", *row)

    def codes(self, **options: Any) -> set[FindingCode]:
        return {finding.code for finding in self.verify(**options).findings}

    @property
    def trust(self) -> Any:
        return load_trust(self.trusted)


@pytest.fixture
def copy(tmp_path: Path, pristine: Populated) -> Iterator[Copy]:
    with _copied(pristine, tmp_path / "registry") as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, pristine: Populated) -> Iterator[Copy]:
    """A copy for tests that put everything back."""
    with _copied(pristine, tmp_path_factory.mktemp("shared") / "registry") as made:
        yield made


@contextmanager
def _copied(pristine: Populated, path: Path) -> Iterator[Copy]:
    shutil.copytree(pristine.registry.path, path)
    registry = Registry(path)
    try:
        yield Copy(path, registry, pristine, Path(f"{pristine.key}.pub"))
    finally:
        registry.close()
