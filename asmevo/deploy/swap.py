"""Carry out a plan so that a kill at any moment leaves each file old or new, and undoable."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from asmevo.deploy.backup import load_backup, store_backup
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.manifest import Manifest, load_manifest, store_manifest
from asmevo.deploy.plan import Change
from asmevo.deploy.tree import Tree, unwritable
from asmevo.durable import write_atomically

log = logging.getLogger(__name__)


def carry_out(tree: Tree, changes: Sequence[Change], kind: str = "file",
              base: str | None = None) -> Manifest:
    """Write the changes of a plan; the caller holds the tree's lock (`asmevo.deploy.lock`).

    The order makes it safe: originals are backed up, the manifest says what is intended, then the
    files are exchanged. ``kind`` and ``base`` are for the manifest of a tree that has none yet.
    Raises `DeployError`; what was exchanged before it stays and is in the manifest.
    """
    manifest = load_manifest(tree)
    for change in changes:
        _check_unchanged(tree, change)
        _keep_original(tree, change, manifest)
    before = manifest if manifest.files else Manifest(kind=kind, base=base)
    manifest = replace(before, files={**before.files,
                                      **{c.entry.path: c.entry for c in changes}})
    store_manifest(tree, manifest)
    done: set[str] = set()
    try:
        for change in changes:
            if change.needed:
                _check_unchanged(tree, change)
                _exchange(tree, change)
            done.add(change.entry.path)
    except DeployError:
        kept = {path: entry if path in done or path not in {c.entry.path for c in changes}
                else before.files.get(path) for path, entry in manifest.files.items()}
        with suppress(DeployError):  # the manifest of the intent is right as well, only less tidy
            store_manifest(tree, replace(manifest, files={
                path: entry for path, entry in kept.items() if entry is not None}))
        raise
    return manifest


def _check_unchanged(tree: Tree, change: Change) -> None:
    link = _is_link(tree, change)
    if tree.sha256(change.entry.path, link=link) != change.before_sha256:
        raise DeployError(DeployRefusal.CHANGED,
                          f"{shown(tree.root / change.entry.path)} was changed by someone else "
                          "while it was being deployed to")


def _keep_original(tree: Tree, change: Change, manifest: Manifest) -> None:
    entry = change.entry
    if change.before_sha256 == entry.original_sha256:
        path = tree.path(entry.path, link=_is_link(tree, change))
        store_backup(tree, tree.read(entry.path, link=_is_link(tree, change)),
                     stat.S_IMODE(path.stat().st_mode))
    else:
        load_backup(tree, entry.original_sha256)


def _exchange(tree: Tree, change: Change) -> None:
    entry = change.entry
    path = tree.path(entry.path, link=_is_link(tree, change))
    write_in_place(path, change.data)
    for swap in entry.swaps:
        log.info("deployed %s for original %s of kernel %s in %s (%.4fx, %s)",
                 swap.replacement_sha256, swap.original_sha256, shown(swap.kernel), shown(path),
                 swap.speedup, swap.timing_source)


def _is_link(tree: Tree, change: Change) -> bool:
    return change.entry.link is not None and (tree.root / change.entry.path).is_symlink()


def write_in_place(path: Path, data: bytes, like: Path | None = None) -> None:
    """Exchange a file's content atomically; mode and, as far as permitted, ownership stay.

    A file that is not there gets those of the file ``like``. Other hard links of the file keep the
    old content. Raises `DeployError`.
    """
    try:
        status = (path if like is None or os.path.exists(path) else like).stat()
        remove_leftovers(path)
        write_atomically(path, data, mode=stat.S_IMODE(status.st_mode),
                         owner=(status.st_uid, status.st_gid))
    except OSError as error:
        raise unwritable(path, error) from error


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files that a killed `write_atomically` left beside a file."""
    prefix, suffix = f".{path.name}.", ".tmp"
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if name.startswith(prefix) and name.endswith(suffix) and (
                    len(name) == len(prefix) + 16 + len(suffix)):
                (path.parent / name).unlink(missing_ok=True)
