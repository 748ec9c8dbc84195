"""AITER's kernels at their configured shapes, and how a cheat is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder
from asmevo.codeobject.assembly import Edit
from asmevo.config import register
from asmevo.gates.verdict import Verdict
from asmevo.task.session import Session

Change = tuple[str, str, tuple[str, ...]]
"""``("before" | "replace", first line that starts like this, new lines)``"""

Judge = Callable[..., tuple[Verdict, ...]]


@contextmanager
def configured(folder: Path, *overrides: str) -> Iterator[Session]:
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        config = compose("config", overrides=[*overrides, f"registry.path={folder / 'registry'}"])
    yield Session(config, folder)


@pytest.fixture(scope="session")
def layer_norm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with configured(tmp_path_factory.mktemp("layer_norm")) as session:
        yield session


@pytest.fixture(scope="session")
def topksoftmax(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("topksoftmax")
    with configured(folder, "kernel=aiter_topksoftmax") as session:
        yield session


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
