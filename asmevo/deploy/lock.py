"""One deployer at a time on a tree."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.tree import Tree, unwritable

NAME = "lock"
_POLL_S = 0.05


@contextmanager
def locked(tree: Tree, wait_s: float = 10.0) -> Iterator[None]:
    """Hold the tree's lock; that of a killed process is released by the operating system.

    A tree without deployments is left without a lock file. Raises `DeployError` when another
    process still holds the lock after ``wait_s`` seconds.
    """
    until = time.monotonic() + wait_s
    while (descriptor := _acquired(tree)) is None:
        if time.monotonic() >= until:
            raise DeployError(DeployRefusal.LOCKED,
                              f"another process is deploying to {shown(tree.root)}")
        time.sleep(_POLL_S)
    try:
        _remove_leftovers(tree)
        yield
    finally:
        _tidy(tree)
        os.close(descriptor)


def _acquired(tree: Tree) -> int | None:
    path = tree.state / NAME
    try:
        if tree.state.is_symlink():
            raise DeployError(DeployRefusal.OUTSIDE, f"{shown(tree.state)} is a symbolic link")
        tree.state.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except FileNotFoundError:  # whoever held it before has just removed the folder
        return None
    except OSError as error:
        raise unwritable(tree.state, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Removed while we waited: others would lock a new file of that name.
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError as error:
        os.close(descriptor)
        raise unwritable(path, error) from error
    os.close(descriptor)
    return None


def _remove_leftovers(tree: Tree) -> None:
    """Remove what a killed process was writing to the folder."""
    for folder in (tree.state, tree.state / "backup"):
        with suppress(OSError):
            for name in os.listdir(folder):
                if name.startswith(".") and name.endswith(".tmp"):
                    (folder / name).unlink()


def _tidy(tree: Tree) -> None:
    """Remove the folder if it holds nothing but the lock, which must go first and while held."""
    with suppress(OSError):
        if os.listdir(tree.state) == [NAME]:
            (tree.state / NAME).unlink()
            tree.state.rmdir()
