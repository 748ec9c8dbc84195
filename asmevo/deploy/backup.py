"""The originals of a tree's files, kept by content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from asmevo.bundle.open import CONTAINER_LIMIT
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import read_file
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.tree import Tree, unwritable
from asmevo.durable import write_atomically


def backup_path(tree: Tree, sha256: str) -> Path:
    """Where the original of that hash is kept."""
    return tree.state / "backup" / sha256


def store_backup(tree: Tree, data: bytes, mode: int) -> None:
    """Keep an original with its permission bits, and read back what was written."""
    sha256 = hashlib.sha256(data).hexdigest()
    path = backup_path(tree, sha256)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not backup_intact(tree, sha256):
            write_atomically(path, data, mode=mode)
    except OSError as error:
        raise unwritable(path, error) from error
    load_backup(tree, sha256)


def load_backup(tree: Tree, sha256: str) -> bytes:
    """An original. Raises `DeployError` when it is gone or is not what it was."""
    path = backup_path(tree, sha256)
    try:
        if path.is_symlink() or path.parent.is_symlink():
            raise SourceError("it is a symbolic link")
        data = read_file(path, CONTAINER_LIMIT)
    except SourceError as error:
        raise DeployError(DeployRefusal.BACKUP,
                          f"the backup {shown(path)} is missing or unreadable") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DeployError(DeployRefusal.BACKUP, f"the backup {shown(path)} was altered")
    return data


def backup_intact(tree: Tree, sha256: str) -> bool:
    """Whether the original can be put back."""
    try:
        load_backup(tree, sha256)
    except DeployError:
        return False
    return True


def drop_backups(tree: Tree, needed: set[str]) -> None:
    """Remove the originals that no deployed file needs any more."""
    folder = tree.state / "backup"
    try:
        for path in list(folder.iterdir()) if folder.is_dir() else []:
            if path.name not in needed:
                path.unlink()
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    except OSError as error:
        raise unwritable(folder, error) from error
