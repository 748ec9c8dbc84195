"""A deployment from beginning to end: find, ask for replacements, plan, exchange."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from asmevo.codeobject.container import CodeObject
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import Manifest, load_manifest
from asmevo.deploy.places import Place, find_places
from asmevo.deploy.plan import Change, Plan, Refused, make_plan
from asmevo.deploy.substitute import Substitute
from asmevo.deploy.swap import carry_out
from asmevo.deploy.tree import Tree

Supply = Callable[[str], Substitute | None]
"""Gives the replacement for an original's SHA-256, None where there is none; it may raise
`AsmEvoError`, which ends the deployment before anything is changed."""


class Target(Protocol):
    """How one kind of host program finds code objects in a tree."""

    @property
    def kind(self) -> str: ...

    @property
    def containers(self) -> bool:
        """Whether objects inside fat binaries, bundles and archives are looked for."""
        ...

    def covers(self, path: str) -> bool:
        """Whether the program would load objects from a file of that relative path."""
        ...

    def guard(self, tree: Tree, place: Place, original: CodeObject,
              replacement: CodeObject) -> None:
        """Raise `DeployError` when the program would not load what is put there."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was, or with a dry run would be, done to the tree that lies at ``root``."""

    root: Path
    changes: tuple[Change, ...]
    refused: tuple[Refused, ...]
    dry_run: bool


def deploy(tree: Tree, target: Target, supply: Supply, *,
           originals: Collection[str] | None = None, dry_run: bool = False,
           base: str | None = None) -> Outcome:
    """Exchange every code object of a tree for which there is a replacement.

    ``originals`` narrows that to some, by SHA-256; ``base`` is the tree that an overlay has links
    to. What speaks against single places is in the outcome. Raises `DeployError` when one of the
    ``originals`` is not in the tree, which then stays as it was, or the tree cannot be written.
    """
    with nullcontext() if dry_run else locked(tree):
        manifest = load_manifest(tree)
        if not manifest.files:
            manifest = Manifest(kind=target.kind, base=base)
        plan = planned(tree, manifest, target, supply, originals)
        if not dry_run and plan.changes:
            carry_out(tree, plan.changes, target.kind, base)
    return Outcome(tree.root, plan.changes, plan.refused, dry_run)


def planned(tree: Tree, manifest: Manifest, target: Target, supply: Supply,
            originals: Collection[str] | None, *, in_place: bool = True) -> Plan:
    """What a deployment would do; changes nothing. For ``in_place`` see `make_plan`."""
    places = [place for place in find_places(tree, manifest, containers=target.containers,
                                             only=target.covers)
              if originals is None or place.original_sha256 in originals]
    _check_found(tree, places, originals)
    substitutes = _supplied(places, supply)

    def guard(place: Place, original: CodeObject, replacement: CodeObject) -> None:
        target.guard(tree, place, original, replacement)

    return make_plan(tree, manifest, places, substitutes, guard, in_place=in_place)


def _check_found(tree: Tree, places: Collection[Place],
                 originals: Collection[str] | None) -> None:
    missing = sorted(set(originals or ()) - {place.original_sha256 for place in places})
    if missing:
        raise DeployError(DeployRefusal.NOT_FOUND,
                          f"nothing in {shown(tree.root)} is original {missing[0]}: it is not "
                          "there, or was changed by someone else")


def _supplied(places: Collection[Place], supply: Supply) -> Mapping[str, Substitute]:
    found = {}
    for sha256 in sorted({place.original_sha256 for place in places}):
        substitute = supply(sha256)
        if substitute is not None:
            found[sha256] = substitute
    return found
