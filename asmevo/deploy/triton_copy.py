"""A copy of a Triton cache in another folder, whose group files point into the copy."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from asmevo.deploy.backup import load_backup
from asmevo.deploy.beside import built_beside, check_destination
from asmevo.deploy.deployment import Outcome, Supply, planned
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.manifest import Manifest, load_manifest
from asmevo.deploy.swap import carry_out
from asmevo.deploy.tree import STATE, Tree
from asmevo.deploy.triton import GROUP, TEMPORARY, TritonCache, check_idle, child_paths


def check_copyable(cache: Tree) -> None:
    """Raises `DeployError` for a cache that cannot be copied: links, paths that lead out of it.

    Triton makes no symbolic links in a cache.
    """
    for path in cache.files():
        full = cache.root / path
        if os.path.realpath(full) != str(full):
            raise DeployError(DeployRefusal.OUTSIDE,
                              f"{shown(full)} is a symbolic link, of which Triton makes none")
        if full.name.startswith(GROUP):
            check_idle(full.parent)
            moved_group(cache, full, cache.root)


def copy_cache(cache: Tree, manifest: Manifest, folder: Path, seen_as: Path) -> None:
    """Copy a cache into an empty ``folder`` that will be found at the absolute path ``seen_as``.

    What was deployed in the cache, as its ``manifest`` tells, is copied as the original that it
    stands for. Raises `DeployError`.
    """
    for path in cache.files():
        source, target = cache.root / path, folder / path
        if any(part.startswith(TEMPORARY) for part in PurePosixPath(path).parts):
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.name.startswith(GROUP):
                target.write_text(json.dumps({"child_paths": moved_group(cache, source, seen_as)}))
                shutil.copymode(source, target)
            elif (entry := manifest.files.get(path)) and entry.ours(cache.sha256(path)):
                target.write_bytes(load_backup(cache, entry.original_sha256))
                shutil.copymode(source, target)
            else:
                shutil.copy2(source, target, follow_symlinks=False)
        except FileNotFoundError as error:
            raise DeployError(DeployRefusal.BUSY,
                              f"{shown(source)} disappeared while it was being copied") from error


def deploy_to_copy(cache: Tree, destination: Path, supply: Supply, *,
                   originals: Collection[str] | None = None, dry_run: bool = False) -> Outcome:
    """Copy a cache, which stays as it is and may be read-only, and deploy to the copy.

    Without anything to exchange no copy is made. Raises `DeployError`.
    """
    target = check_destination(cache.root, destination)
    check_copyable(cache)
    manifest = load_manifest(cache)
    if dry_run:
        plan = planned(cache, manifest, TritonCache(), supply, originals, in_place=False)
        return Outcome(target, plan.changes, plan.refused, dry_run)
    with built_beside(target) as beside:
        copy = Tree(beside.folder)
        copy_cache(cache, manifest, copy.root, target)
        if load_manifest(cache) != manifest:
            raise DeployError(DeployRefusal.BUSY,
                              f"{shown(cache.root)} was deployed to while it was being copied")
        as_target = TritonCache(seen_as=target)
        plan = planned(copy, Manifest(), as_target, supply, originals)
        if plan.changes:
            carry_out(copy, plan.changes, as_target.kind, base=str(cache.root))
            beside.keep = True
    return Outcome(target, plan.changes, plan.refused, dry_run)


def moved_group(cache: Tree, group: Path, seen_as: Path) -> dict[str, str]:
    """What a group file lists, with every path in the cache turned into one in ``seen_as``.

    Raises `DeployError` for a path that is not in the cache.
    """
    moved = {}
    for name, path in child_paths(group).items():
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(cache.root):
            raise DeployError(DeployRefusal.OUTSIDE,
                              f"the group file {shown(group)} points out of the cache, to "
                              f"{shown(path)}")
        relative = real.relative_to(cache.root)
        if relative.parts[:1] == (STATE,):
            raise DeployError(DeployRefusal.OUTSIDE,
                              f"the group file {shown(group)} points to {shown(path)}")
        moved[name] = str(seen_as / relative)
    return moved

