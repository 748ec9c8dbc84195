"""What a power failure may not undo is made durable in this order: content, name, folder, row.

test_volumes.py cuts the power of a real ext4, which makes more durable than POSIX promises (a new
name with the file of that name); here the order itself is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.registry.blobs.store import BlobStore
from asmevo.registry.database import sqlite
from asmevo.registry.registry import Registry

Step = tuple[str, str]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """What is done to files, in order, by name of the operation and path."""
    done: list[Step] = []

    def record(owner: Any, name: str, path_of: Callable[..., Any]) -> None:
        real = getattr(owner, name)

        def recording(*arguments: Any, **options: Any) -> Any:
            result = real(*arguments, **options)
            done.append((name, str(path_of(*arguments))))
            return result
        monkeypatch.setattr(owner, name, recording)

    record(os, "fsync", lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    record(os, "mkdir", lambda path, *_: path)
    record(os, "replace", lambda _, target: target)
    record(sqlite, "take_turn", lambda *_: "")
    return done


def violations(steps: list[Step]) -> list[str]:
    """New names that no fsync of their folder follows, and files renamed without one."""
    found = []
    for at, (operation, path) in enumerate(steps):
        later = [step for step in steps[at:] if step[0] == "fsync"]
        if operation in ("mkdir", "replace") and (
                "fsync", str(Path(path).parent)) not in later:
            found.append(f"{operation} {path} is not durable")
        if operation == "replace":
            before = [p for name, p in steps[:at] if name == "fsync"]
            if not any(Path(p).name.startswith(f".{Path(path).name}.") for p in before):
                found.append(f"{path} was renamed before its content was durable")
    return found


def test_everything_is_durable_before_the_transaction(tmp_path: Path, original: CodeObject,
                                                      steps: list[Step]) -> None:
    registry = Registry(tmp_path / "not" / "yet" / "there")
    registry.check_writable()
    registry.record_original(original, "a test")
    turns = [at for at, step in enumerate(steps) if step[0] == "take_turn"]
    before = steps[:turns[-1]]
    assert ("mkdir", str(tmp_path / "not")) in before
    assert any(name == "replace" and original.sha256 in path for name, path in before)
    assert violations(before) == []
    registry.close()


def test_another_process_may_not_have_come_to_it(tmp_path: Path, steps: list[Step]) -> None:
    """A blob that somebody else has just renamed is made durable by whoever relies on it."""
    path = BlobStore(tmp_path).path(BlobStore(tmp_path).put(b"x"))
    steps.clear()
    BlobStore(tmp_path).put(b"x")
    assert ("fsync", str(path.parent)) in steps  # the name of the file
    assert ("fsync", str(path.parent.parent)) in steps  # the name of its folder
    assert not [step for step in steps if step[0] == "replace"]


def test_the_order_matters() -> None:
    """What this test would say of code that forgets."""
    folder, file = ("mkdir", "/r/blobs/aa"), ("replace", "/r/blobs/aa/b.zst")
    assert violations([folder, ("fsync", "/r/blobs"), ("fsync", "/r/blobs/aa/.b.zst.1.tmp"), file,
                       ("fsync", "/r/blobs/aa")]) == []
    assert violations([file]) == ["/r/blobs/aa/b.zst is not durable".replace("/r", "replace /r", 1),
                                  "/r/blobs/aa/b.zst was renamed before its content was durable"]
    assert violations([("fsync", "/r/blobs"), folder]) == ["mkdir /r/blobs/aa is not durable"]
