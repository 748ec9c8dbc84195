"""The subjects of the threat model as `task=threats` has them, made when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder
from asmevo.codeobject.assembly import Edit
from asmevo.config import register
from asmevo.failure import resolve
from asmevo.gates.verdict import Verdict
from asmevo.task.session import Session, make
from asmevo.task.threats import Threats
from asmevo.threats.subject import Subject

Change = tuple[str, str, tuple[str, ...]]
"""``("before" | "replace", first line that starts like this, new lines)``"""

Judge = Callable[..., tuple[Verdict, ...]]


def configured(folder: Path, *overrides: str) -> Session:
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        config = compose("config", overrides=[*overrides, f"registry.path={folder / 'registry'}"])
    resolve(config)
    return Session(config, folder)


class Subjects(dict[str, Subject]):
    """Subjects by name. An original is held against itself once, when it is first asked for."""

    def __init__(self, session: Session, task: Threats) -> None:
        super().__init__()
        self.session = session
        self.task = task

    def __missing__(self, name: str) -> Subject:
        self[name] = self.task.subject(self.session, name)
        return self[name]


@pytest.fixture(scope="session")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Subject]:
    session = configured(tmp_path_factory.mktemp("threats"), "task=threats")
    return Subjects(session, make(session.config, "task", Threats))


@pytest.fixture
def configure(tmp_path: Path) -> Callable[..., Session]:
    """Makes a session with overrides of the configuration."""
    return lambda *overrides: configured(tmp_path, *overrides)


@pytest.fixture(scope="session")
def layer_norm(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return configured(tmp_path_factory.mktemp("layer_norm"))


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Applies changes to a session's original and gives all verdicts, G4's included."""

    def judged(session: Session, *changes: Change) -> tuple[Verdict, ...]:
        lines = [ln.text for ln in session.assembly.body(session.symbol).lines if ln.text]
        edits = []
        for how, start, new in changes:
            at = next(i for i, line in enumerate(lines) if line.startswith(start))
            stop = at + 1 if how == "replace" else at
            edits.append(Edit(session.symbol, at, stop, new, "cheat"))
        assembly = session.assembly.apply(edits)
        trial, verdicts = session.gates.judge(
            session.baseline, session.toolchain, assembly=assembly
        )
        if verdicts[-1].passed:
            last = session.gates.commit.judge(trial.speedup, trial.timings, 1.0)
            verdicts = (*verdicts, last)
        return verdicts

    return judged
