"""A registry with an original in it, and processes that work on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import asmevo
from asmevo.codeobject.container import CodeObject
from asmevo.registry.registry import Registry
from tests.registry.faults.audit import audited
from tests.registry.faults.work import Acknowledged, Subject, check_candidate, lost

PROCESSES = Path(__file__).with_name("processes.py")
# A child imports the same AsmEvo as the test, installed or not.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(
    [str(Path(asmevo.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
Show = Callable[[str, object], None]


@dataclass
class Site:
    """A registry in ``folder``, and the reports of those who work on it beside it."""

    registry: Registry
    subject: Subject

    @property
    def reports(self) -> Path:
        return self.registry.path.with_name("reports")

    def run(self, command: str, *numbers: float, timeout_s: float) -> None:
        """Run processes and expect that none of them fails."""
        done = subprocess.run(
            [sys.executable, str(PROCESSES), command, str(self.registry.path),
             self.subject.original.sha256, *map(str, numbers)],
            env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout_s)
        assert done.returncode == 0, done.stderr[-4000:]

    def acknowledged(self) -> Iterator[Acknowledged]:
        """Every write that returned, whoever made it."""
        for line in self.lines():
            if "what" in line:
                yield Acknowledged(line["what"], line["key"])

    def summaries(self, kind: str) -> list[dict[str, Any]]:
        """The figures of all processes of a kind."""
        return [line for line in self.lines() if line.get("summary") == kind]

    def lines(self) -> Iterator[dict[str, Any]]:
        for report in sorted(self.reports.iterdir()):
            for line in report.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n"):  # the last one of a killed process may be cut
                    yield json.loads(line)

    def check(self, *, collected: bool = False) -> int:
        """Nothing lost, nothing torn; returns the number of writes that were acknowledged."""
        acknowledged = list(self.acknowledged())
        assert lost(self.registry, self.subject, acknowledged, collected=collected) == []
        for run in self.registry.runs():
            for candidate in self.registry.lineage(run.id):
                check_candidate(self.registry, candidate)
        self.registry.check_writable()
        assert audited(self.registry.path) == []
        self.registry.close()
        assert audited(self.registry.path) == []
        return len(acknowledged)


@pytest.fixture
def site(tmp_path: Path, original: CodeObject) -> Iterator[Site]:
    registry = Registry(tmp_path / "registry", busy_timeout_s=30)
    registry.record_original(original, "amd-aiter")
    registry.close()
    site = Site(registry, Subject.of(original.data))
    site.reports.mkdir()
    yield site
    registry.close()


@pytest.fixture
def show() -> Show:
    """Writes a figure to standard output, which ``pytest -rP`` shows."""
    def write(name: str, value: object) -> None:
        shown = f"{value:.1f}" if isinstance(value, float) else value
        sys.stdout.write(f"{name}: {shown}\n")
    return write
