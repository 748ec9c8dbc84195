"""One deployer at a time, and nobody once it is gone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from asmevo.deploy.errors import DeployError, DeployRefusal
from asmevo.deploy.lock import locked
from asmevo.deploy.tree import STATE, Tree


def test_held_by_another_process(tmp_path: Path) -> None:
    tree = Tree.at(tmp_path)
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        with locked(tree):
            os.write(done, b"1")
            signal.pause()
        os._exit(0)
    assert os.read(ready, 1) == b"1"
    with pytest.raises(DeployError, match="another process") as caught, locked(tree, wait_s=0):
        pass
    assert caught.value.code is DeployRefusal.LOCKED
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with locked(tree, wait_s=0):
        pass
    assert list(tmp_path.iterdir()) == []


def test_only_one_at_a_time_though_the_file_comes_and_goes(tmp_path: Path) -> None:
    """Six processes count; a lock that two of them held would lose a count."""
    (tmp_path / "tree").mkdir()
    tree = Tree.at(tmp_path / "tree")
    counter = tmp_path / "counter"
    counter.write_text("0")
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            try:
                for _ in range(30):
                    with locked(tree, wait_s=60):
                        counter.write_text(str(int(counter.read_text()) + 1))
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    assert counter.read_text() == "180"
    assert not (tree.root / STATE).exists()


def test_a_state_folder_that_is_a_link(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / STATE).symlink_to(tmp_path)
    with pytest.raises(DeployError) as caught, locked(Tree.at(tree)):
        pass
    assert caught.value.code is DeployRefusal.OUTSIDE
    (tree / STATE).unlink()
    (tree / STATE).write_bytes(b"")
    with pytest.raises(DeployError), locked(Tree.at(tree)):
        pass
