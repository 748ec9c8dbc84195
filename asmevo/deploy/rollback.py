"""Give a tree its originals back."""

from __future__ import annotations

import logging
import os
import secrets
from dataclasses import dataclass, replace
from enum import StrEnum

from asmevo.deploy.backup import backup_path, drop_backups, load_backup
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.manifest import DeployedFile, load_manifest, store_manifest
from asmevo.deploy.status import FileStatus, State, file_status
from asmevo.deploy.swap import remove_leftovers, write_in_place
from asmevo.deploy.tree import Tree, unwritable, writable
from asmevo.durable import sync_folder

log = logging.getLogger(__name__)


class Foreign(StrEnum):
    """What to do with a file that someone else changed after the deployment."""

    REFUSE = "refuse"
    OVERWRITE = "overwrite"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Rollback:
    """What was, or would be, done: files given back, let go of, and refused with the reason."""

    restored: tuple[str, ...]
    untouched: tuple[str, ...]
    refused: tuple[tuple[str, DeployError], ...]


def roll_back(tree: Tree, foreign: Foreign = Foreign.REFUSE, *, dry_run: bool = False) -> Rollback:
    """Put every original back; the caller holds the tree's lock unless it is a dry run.

    Backups are verified before anything is overwritten. What is refused stays in the manifest, so
    that a second attempt can follow; with nothing refused, the tree is as it was before the first
    deployment.
    """
    manifest = load_manifest(tree)
    restored: list[str] = []
    untouched: list[str] = []
    refused: list[tuple[str, DeployError]] = []
    for path, entry in sorted(manifest.files.items()):
        status = file_status(tree, entry)
        try:
            changes = _restores(tree, status, foreign)
            if changes and not dry_run:
                _restore(tree, status)
            (restored if changes else untouched).append(path)
        except DeployError as error:
            refused.append((path, error))
        if not dry_run and (tree.root / path).parent.is_dir():
            remove_leftovers(tree.root / path)
    if not dry_run:
        left = {path: manifest.files[path] for path, _ in refused}
        store_manifest(tree, replace(manifest, files=left))
        drop_backups(tree, {entry.original_sha256 for entry in left.values()})
    return Rollback(tuple(restored), tuple(untouched), tuple(refused))


def _restores(tree: Tree, status: FileStatus, foreign: Foreign) -> bool:
    """Whether the original has to be put back; raises `DeployError` when it must not be."""
    entry, state = status.entry, status.state
    path = tree.root / entry.path
    if state is State.ORIGINAL:
        return False
    if state in (State.FOREIGN, State.MISSING):
        # Whoever empties a cache takes the folder as well; then there is nothing to give back.
        if foreign is Foreign.FORGET or (state is State.MISSING and not path.parent.exists()):
            return False
        if foreign is Foreign.REFUSE:
            raise DeployError(DeployRefusal.FOREIGN,
                              f"{shown(path)} was {_done(state)} by someone else after the "
                              "deployment; --force puts the original there all the same, "
                              "--forget leaves it as it is")
    if not _link_suffices(tree, entry):
        load_backup(tree, entry.original_sha256)
    if not writable(path.parent):
        raise DeployError(DeployRefusal.READ_ONLY, f"the folder of {shown(path)} is read-only")
    return True


def _done(state: State) -> str:
    return "removed" if state is State.MISSING else "changed"


def _restore(tree: Tree, status: FileStatus) -> None:
    entry = status.entry
    linked = entry.link is not None
    path = tree.path(entry.path, link=linked)
    if linked and _link_suffices(tree, entry):
        _relink(tree, entry)
    else:
        write_in_place(path, load_backup(tree, entry.original_sha256),
                       backup_path(tree, entry.original_sha256))
    log.info("rolled %s back to original %s (was %s)", shown(path), entry.original_sha256,
             status.state)


def _link_suffices(tree: Tree, entry: DeployedFile) -> bool:
    """An overlay gets its link back, whatever the file behind it has become since."""
    return entry.link is not None and os.path.exists(
        (tree.root / entry.path).parent / entry.link)


def _relink(tree: Tree, entry: DeployedFile) -> None:
    path = tree.path(entry.path, link=True)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
    try:
        os.symlink(str(entry.link), temporary)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)

