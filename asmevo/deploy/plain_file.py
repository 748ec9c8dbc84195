"""Files that hold code objects, wherever they lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from asmevo.codeobject.container import CodeObject
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.places import Place
from asmevo.deploy.tree import Tree


def named_file(tree: Tree, place: Path) -> str | None:
    """The name in its tree of the file that was given, None for a folder.

    Raises `DeployError` for a symbolic link, whose target lies in another tree or under another
    name: what is exchanged has to be named itself.
    """
    path = place.expanduser()
    if path.is_dir():
        return None
    if path.is_symlink():
        raise DeployError(DeployRefusal.OUTSIDE,
                          f"{shown(place)} is a symbolic link to {shown(path.resolve())}; name "
                          "that file if it is meant")
    return path.resolve().relative_to(tree.root).as_posix()


@dataclass(frozen=True, slots=True)
class PlainFile:
    """One file of a tree (``name`` relative to it), or all of them for None.

    A file may be a code object or carry some: a host library, an offload bundle, an archive.
    """

    name: str | None = None
    kind: str = "file"
    containers: bool = True

    def covers(self, path: str) -> bool:
        return self.name is None or path == self.name

    def guard(self, tree: Tree, place: Place, original: CodeObject,
              replacement: CodeObject) -> None:
        """Nothing is known of who loads it."""
