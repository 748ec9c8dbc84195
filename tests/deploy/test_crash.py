"""A SIGKILL before any step of a deployment or rollback leaves a tree that can be given back.

The steps are the calls that change a file system. A forked child is killed before its n-th one,
for every n until it gets through.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from asmevo.deploy.aiter import deploy_to_overlay
from asmevo.deploy.deployment import deploy
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import load_manifest
from asmevo.deploy.plain_file import PlainFile
from asmevo.deploy.rollback import roll_back
from asmevo.deploy.status import State, tree_status
from asmevo.deploy.swap import carry_out
from asmevo.deploy.tree import Tree
from tests.deploy.conftest import Originals, snapshot

STEPS = ("write", "fsync", "open", "replace", "rename", "unlink", "mkdir", "rmdir", "symlink",
         "fchmod", "fchown", "link", "close")


def killed_at(step: int, action: Callable[[], object]) -> bool:
    """Run ``action`` in a child that is killed before the given step; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            _arm(step)
            action()
        except BaseException:
            os._exit(99)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def _arm(step: int) -> None:
    left = [step]

    def counting(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object, **options: object) -> object:
            flags = arguments[1] if name == "open" and len(arguments) > 1 else None
            if name != "open" or (isinstance(flags, int) and flags & os.O_CREAT):
                if left[0] == 0:
                    if name == "write":  # half of it gets through
                        data = arguments[1]
                        assert isinstance(data, bytes | memoryview)
                        real(arguments[0], bytes(data)[:len(data) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
            return real(*arguments, **options)

        setattr(os, name, call)

    for name in STEPS:
        counting(name)


def every_kill(make: Callable[[], Path], action: Callable[[Path], object],
               check: Callable[[Path, int], None]) -> int:
    """``check`` a fresh tree after each kill; how many there were."""
    for step in range(1000):
        place = make()
        killed = killed_at(step, lambda place=place: action(place))  # type: ignore[misc]
        check(place, step)
        if not killed:
            return step
        shutil.rmtree(place)
    raise AssertionError("it never gets through")


def swap_all(originals: Originals, number: int, folder: Path) -> Callable[[Path], object]:
    """Deploys to trees like ``folder``; it is planned once, for that takes the longest."""
    changes = deploy(Tree.at(folder), PlainFile(), originals.supply(number), dry_run=True).changes

    def action(folder: Path) -> None:
        tree = Tree.at(folder)
        with locked(tree):
            carry_out(tree, changes)

    return action


def check_states(originals: Originals, numbers: tuple[int, ...]) -> Callable[[Path, int], None]:
    """Every file is an original or one of those replacements, and all can be undone."""

    def check(folder: Path, step: int) -> None:
        tree = Tree.at(folder)
        for path, data in originals.files.items():
            now = (folder / path).read_bytes()
            allowed = [data, *(originals.variants[path][n] for n in numbers)]
            assert now in allowed, (step, path)
        states = {status.entry.path: status for status in tree_status(tree, load_manifest(tree))}
        for path, data in originals.files.items():
            if (folder / path).read_bytes() != data:
                assert states[path].state in (State.DEPLOYED, State.SUPERSEDED), (step, path)
            if path in states:
                assert states[path].backup, (step, path)
                assert states[path].state is not State.FOREIGN
        with locked(tree, wait_s=0):
            done = roll_back(tree)
        assert not done.refused
        assert snapshot(folder) == originals.snapshot, step

    return check


def test_killed_while_deploying(originals: Originals) -> None:
    action = swap_all(originals, 1, originals.make())
    kills = every_kill(originals.make, action, check_states(originals, (1,)))
    assert kills > 30


def test_killed_while_deploying_again(originals: Originals) -> None:
    first = swap_all(originals, 1, originals.make())

    def make() -> Path:
        folder = originals.make()
        first(folder)
        return folder

    kills = every_kill(make, swap_all(originals, 2, make()), check_states(originals, (1, 2)))
    assert kills > 15


def test_killed_deployment_is_completed_by_the_next(originals: Originals) -> None:
    action = swap_all(originals, 1, originals.make())

    def check(folder: Path, step: int) -> None:
        deploy(Tree.at(folder), PlainFile(), originals.supply(1))
        tree = Tree.at(folder)
        found = tree_status(tree, load_manifest(tree))
        assert [(s.state, s.backup) for s in found] == [(State.DEPLOYED, True)] * 2, step
        left = {path.name for path in folder.rglob("*.tmp")}
        assert not left, step

    every_kill(originals.make, action, check)


def test_killed_while_rolling_back(originals: Originals) -> None:
    first = swap_all(originals, 1, originals.make())

    def make() -> Path:
        folder = originals.make()
        first(folder)
        return folder

    def back(folder: Path) -> None:
        tree = Tree.at(folder)
        with locked(tree):
            roll_back(tree)

    assert every_kill(make, back, check_states(originals, (1,))) > 15


def test_killed_overlay_is_there_or_not(originals: Originals, tmp_path: Path) -> None:
    base = originals.make()
    (base / "csrc").mkdir()
    (base / "hsa").mkdir()
    for path in originals.files:
        (base / path).rename(base / "hsa" / Path(path).name)
    before = snapshot(base)

    def make() -> Path:
        place = tmp_path / "place"
        place.mkdir()
        return place

    def check(place: Path, step: int) -> None:
        overlay = place / "overlay"
        if overlay.exists():
            tree = Tree.at(overlay)
            states = [s.state for s in tree_status(tree, load_manifest(tree))]
            assert states == [State.DEPLOYED] * 2, step
        else:
            deploy_to_overlay(Tree.at(base), overlay, originals.supply(1))
        assert snapshot(base) == before

    kills = every_kill(make, lambda place: deploy_to_overlay(
        Tree.at(base), place / "overlay", originals.supply(1)), check)
    assert kills > 15


def test_the_harness_kills(tmp_path: Path) -> None:
    """Were nothing killed, every test above would pass."""
    def action() -> None:
        os.mkdir(tmp_path / "one")
        os.mkdir(tmp_path / "two")

    assert killed_at(1, action)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
