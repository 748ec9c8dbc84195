"""AITER's tree as an overlay: links to what it ships, and the replaced files.

`AITER_META_DIR` has ``csrc`` (host code, compiled when first used) and ``hsa`` (code objects). The
host code opens ``$AITER_ASM_DIR`` plus a file name; importing ``aiter`` sets that variable, so that
it must be set again afterwards, and before the first launch. How the path is put together depends
on the version (ROCm/aiter, ``aiter/jit/core.py`` and ``csrc/include/aiter_hip_common.h``):

* until January 2026 the variable is ``<meta>/hsa/<gfx>/``, and the file name is appended as it is;
* since pull request 1812 it is ``<meta>/hsa/``, and ``/<gfx>/`` is put before the file name;
* since pull request 1545 ``AITER_META_DIR`` in the environment is honoured if it has ``csrc``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import read_file
from asmevo.deploy.beside import built_beside, check_destination
from asmevo.deploy.deployment import Outcome, Supply, deploy, planned
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.manifest import Manifest, load_manifest
from asmevo.deploy.places import Place
from asmevo.deploy.swap import carry_out
from asmevo.deploy.tree import Tree

OBJECTS = "hsa"
HOST_CODE = "csrc"
LOADER = "csrc/include/aiter_hip_common.h"
_TEXT_LIMIT = 4 << 20


@dataclass(frozen=True, slots=True)
class AiterTree:
    """Below ``hsa`` lie the objects that AITER loads by path."""

    kind: str = "aiter"
    containers: bool = False

    def covers(self, path: str) -> bool:
        return path.startswith(f"{OBJECTS}/") and path.endswith(".co")

    def guard(self, tree: Tree, place: Place, original: CodeObject,
              replacement: CodeObject) -> None:
        """Launch parameters are in the host code; there is no other file that must agree."""


def deploy_to_overlay(base: Tree, overlay: Path, supply: Supply, *,
                      originals: Collection[str] | None = None,
                      dry_run: bool = False) -> Outcome:
    """Deploy to an overlay of ``base``, which stays as it is and may be read-only.

    The overlay is made unless it exists. Without anything to exchange none is made. Raises
    `DeployError`.
    """
    for folder in (OBJECTS, HOST_CODE):
        if not (base.root / folder).is_dir():
            raise DeployError(DeployRefusal.NOT_FOUND,
                              f"{shown(base.root)} has no folder '{folder}', so it is not the tree "
                              "that AITER loads from")
    if overlay.expanduser().is_dir():
        there = Tree.at(overlay)
        if not _is_overlay(there, base):
            raise DeployError(DeployRefusal.DESTINATION,
                              f"{shown(overlay)} exists and is no overlay of {shown(base.root)}")
        return deploy(there, AiterTree(), supply, originals=originals, dry_run=dry_run,
                      base=str(base.root))
    target = check_destination(base.root, overlay)
    if dry_run:
        plan = planned(base, Manifest(), AiterTree(), supply, originals, in_place=False)
        return Outcome(target, plan.changes, plan.refused, dry_run)
    with built_beside(target) as beside:
        _link(base, beside.folder)
        built = Tree(beside.folder)
        plan = planned(built, Manifest(kind="aiter", base=str(base.root)), AiterTree(), supply,
                       originals)
        if plan.changes:
            carry_out(built, plan.changes, "aiter", base=str(base.root))
            beside.keep = True
    return Outcome(target, plan.changes, plan.refused, dry_run)


def _link(base: Tree, folder: Path) -> None:
    """A link for each file, so that any of them can be exchanged later."""
    for path in base.files():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(base.root / path, target)


def _is_overlay(tree: Tree, base: Tree) -> bool:
    manifest = load_manifest(tree)
    if manifest.files:
        return (manifest.kind, manifest.base) == ("aiter", str(base.root))
    first = next(base.files(), "")
    link = tree.root / first
    return link.is_symlink() and os.readlink(link) == str(base.root / first)


def environment(base: Tree, overlay: Path) -> tuple[str, ...]:
    """What makes AITER load from the overlay: one line for the shell, one for Python."""
    after_import = f"import aiter, os; os.environ[\"AITER_ASM_DIR\"] = {_asm_dir(base, overlay)}"
    lines = [f"in Python, before the first launch: {after_import}"]
    if _honours_meta_dir(base) is not False:
        lines.insert(0, f"export AITER_META_DIR={shlex.quote(str(overlay))}")
    return tuple(lines)


def _asm_dir(base: Tree, overlay: Path) -> str:
    objects = f"{overlay}/{OBJECTS}/"
    if "arch_name" in _text(base.root / LOADER):
        return repr(objects)
    processors = sorted(path.name for path in (base.root / OBJECTS).iterdir() if path.is_dir())
    if len(processors) == 1:
        return repr(f"{objects}{processors[0]}/")
    return f"{objects!r} + aiter.jit.core.get_gfx() + '/'"


def _honours_meta_dir(base: Tree) -> bool | None:
    """Whether AITER reads the variable from the environment; None when its code is not there."""
    for core in (base.root.parent / "aiter/jit/core.py", base.root / "aiter/jit/core.py"):
        text = _text(core)
        if text:
            return 'environ.get("AITER_META_DIR")' in text
    return None


def _text(path: Path) -> str:
    try:
        return read_file(path, _TEXT_LIMIT).decode(errors="replace")
    except SourceError:
        return ""
