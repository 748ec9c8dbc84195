"""A folder in which files are replaced, and nothing outside of it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from asmevo.bundle.open import CONTAINER_LIMIT
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import read_file
from asmevo.deploy.errors import DeployError, DeployRefusal, shown

STATE = ".asmevo-deploy"
"""The folder inside a tree that says what was replaced and keeps the originals."""

FILE_LIMIT = 1_000_000
"""How many files a tree may have; more is a wrong path, or a hostile tree."""


@dataclass(frozen=True, slots=True)
class Tree:
    """``root`` is absolute and free of symbolic links."""

    root: Path

    @classmethod
    def at(cls, place: Path | str) -> Tree:
        """The tree of a folder, or of the folder that a file lies in."""
        try:
            path = Path(place).expanduser()
            root = path.resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise DeployError(DeployRefusal.UNREADABLE,
                              f"there is no folder or file {shown(place)}") from error
        return cls(root if root.is_dir() else root.parent)

    @property
    def state(self) -> Path:
        return self.root / STATE

    def files(self) -> Iterator[str]:
        """Paths of regular files and of links to some, relative to the root, in a stable order.

        Links to folders are not entered. Raises `DeployError` on a folder that cannot be listed.
        """
        count = 0
        for folder, folders, names in os.walk(self.root, onerror=_unlistable):
            folders[:] = sorted(name for name in folders if name != STATE)
            for name in sorted(names):
                path = Path(folder, name)
                if path.is_file():
                    count += 1
                    if count > FILE_LIMIT:
                        raise DeployError(DeployRefusal.UNREADABLE,
                                          f"{shown(self.root)} has more than {FILE_LIMIT} files")
                    yield path.relative_to(self.root).as_posix()

    def path(self, name: str, *, link: bool = False) -> Path:
        """The file of a relative path, which must not lead out of the tree.

        A last part that is a symbolic link is refused too, unless ``link`` is expected.
        """
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\0" in name or parts[0] == STATE:
            raise DeployError(DeployRefusal.OUTSIDE, f"{shown(name)} is no file of the tree")
        path = self.root.joinpath(*parts)
        checked = path.parent if link else path
        if os.path.realpath(checked) != str(checked):
            raise DeployError(DeployRefusal.OUTSIDE,
                              f"{shown(path)} is, or lies behind, a symbolic link")
        return path

    def read(self, name: str, *, link: bool = False) -> bytes:
        """The content of a file of the tree."""
        try:
            return read_file(self.path(name, link=link), CONTAINER_LIMIT)
        except SourceError as error:
            raise DeployError(DeployRefusal.UNREADABLE, str(error)) from error

    def sha256(self, name: str, *, link: bool = False) -> str | None:
        """The hash of a file of the tree; None where there is no regular file."""
        path = self.path(name, link=link)
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                return None
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(path, error) from error


def writable(folder: Path) -> bool:
    """Whether files of a folder can be exchanged."""
    return os.access(folder, os.W_OK | os.X_OK,
                     effective_ids=os.access in os.supports_effective_ids)


def unreadable(path: Path, error: OSError) -> DeployError:
    """The error for what the operating system does not let us read."""
    return DeployError(DeployRefusal.UNREADABLE,
                       f"cannot read {shown(path)}: {_reason(error)}")


def unwritable(path: Path, error: OSError) -> DeployError:
    """The error for what the operating system does not let us write."""
    read_only = isinstance(error, PermissionError) or (error.strerror or "").startswith("Read-only")
    return DeployError(DeployRefusal.READ_ONLY if read_only else DeployRefusal.UNWRITABLE,
                       f"cannot write {shown(path)}: {_reason(error)}")


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _unlistable(error: OSError) -> None:
    raise unreadable(Path(os.fsdecode(error.filename)), error) from error
