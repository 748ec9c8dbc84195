"""How the files of a tree stand."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

from asmevo.deploy.backup import backup_intact
from asmevo.deploy.errors import DeployError
from asmevo.deploy.manifest import DeployedFile, Manifest
from asmevo.deploy.tree import Tree


class State(StrEnum):
    """What a file holds.

    ``superseded``: an earlier replacement, a later one was not completed. ``base-changed``: in an
    overlay the replacement stands, but the file that it stands for is no longer the original.
    """

    DEPLOYED = "deployed"
    SUPERSEDED = "superseded"
    ORIGINAL = "original"
    FOREIGN = "foreign-change"
    MISSING = "missing"
    BASE_CHANGED = "base-changed"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file's state, and whether its original can be put back."""

    entry: DeployedFile
    state: State
    backup: bool


def file_status(tree: Tree, entry: DeployedFile) -> FileStatus:
    """How one file of the manifest stands."""
    return FileStatus(entry, _state(tree, entry), backup_intact(tree, entry.original_sha256))


def tree_status(tree: Tree, manifest: Manifest) -> tuple[FileStatus, ...]:
    """How every file of the manifest stands."""
    return tuple(file_status(tree, entry) for _, entry in sorted(manifest.files.items()))


def _state(tree: Tree, entry: DeployedFile) -> State:
    link = entry.link is not None and (tree.root / entry.path).is_symlink()
    try:
        sha256 = tree.sha256(entry.path, link=link)
    except DeployError:
        return State.FOREIGN
    if sha256 is None:
        return State.MISSING
    if link:
        same = os.readlink(tree.root / entry.path) == entry.link
        return State.ORIGINAL if same and sha256 == entry.original_sha256 else State.FOREIGN
    if sha256 == entry.original_sha256:
        return State.ORIGINAL
    if not entry.ours(sha256):
        return State.FOREIGN
    if entry.link is not None and _base_sha256(tree, entry) != entry.original_sha256:
        return State.BASE_CHANGED
    return State.DEPLOYED if sha256 == entry.deployed_sha256 else State.SUPERSEDED


def _base_sha256(tree: Tree, entry: DeployedFile) -> str | None:
    target = os.path.realpath((tree.root / entry.path).parent / str(entry.link))
    folder, name = os.path.split(target)
    try:
        return Tree.at(folder).sha256(name)
    except DeployError:
        return None
