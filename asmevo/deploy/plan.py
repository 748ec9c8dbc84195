"""What a deployment would change, with every reason against it found beforehand."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from asmevo.bundle.errors import BundleError
from asmevo.bundle.open import open_container, read_member, replace_member
from asmevo.codeobject.container import CodeObject
from asmevo.deploy.backup import load_backup
from asmevo.deploy.check import check_alike
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.manifest import DeployedFile, Manifest, Swap
from asmevo.deploy.places import Place
from asmevo.deploy.substitute import Substitute
from asmevo.deploy.tree import Tree, writable

Guard = Callable[[Place, CodeObject, CodeObject], None]
"""A target's own check of a place, its original and the replacement; raises `DeployError`."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file's new content. Nothing is written if ``before_sha256`` is its hash already.

    ``entry`` is what the manifest will say of the file.
    """

    entry: DeployedFile
    before_sha256: str
    data: bytes = field(repr=False)

    @property
    def needed(self) -> bool:
        return self.before_sha256 != self.entry.deployed_sha256


@dataclass(frozen=True, slots=True)
class Refused:
    """A place that is left alone, and why."""

    place: Place
    error: DeployError


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a deployment would do, and all that it would not."""

    changes: tuple[Change, ...]
    refused: tuple[Refused, ...]


def make_plan(tree: Tree, manifest: Manifest, places: Sequence[Place],
              substitutes: Mapping[str, Substitute], guard: Guard | None = None, *,
              in_place: bool = True) -> Plan:
    """Plan to fill each place whose original has a substitute (by the original's SHA-256).

    A file is changed as a whole: one refused member keeps the file as it is. Changes nothing.
    A tree of which only a copy will be changed, not ``in_place``, may be read-only.
    """
    wanted = sorted((p for p in places if p.original_sha256 in substitutes),
                    key=lambda p: (p.path, p.member or ""))
    changes: list[Change] = []
    refused: list[Refused] = []
    for path, group in groupby(wanted, key=lambda p: p.path):
        members = list(group)
        try:
            if in_place:
                _check_writable(tree.root / path)
            changes.append(_change(tree, manifest, path, members, substitutes, guard))
        except DeployError as error:
            refused += [Refused(place, error) for place in members]
    return Plan(tuple(changes), tuple(refused))


def _change(tree: Tree, manifest: Manifest, path: str, places: Sequence[Place],
            substitutes: Mapping[str, Substitute], guard: Guard | None) -> Change:
    entry = manifest.files.get(path)
    linked = _is_overlaid(tree, manifest, path)
    full = tree.path(path, link=linked)
    current = tree.read(path, link=linked)
    before = hashlib.sha256(current).hexdigest()
    first = current
    if entry is not None and before != entry.original_sha256:
        if not entry.ours(before):
            raise DeployError(DeployRefusal.FOREIGN,
                              f"{shown(full)} was changed by someone else after a replacement was "
                              "deployed; roll back first")
        first = load_backup(tree, entry.original_sha256)
    data, swaps = current, {s.member: s for s in entry.swaps} if entry is not None else {}
    now = datetime.now(UTC).isoformat()
    for place in places:
        substitute = substitutes[place.original_sha256]
        original = _object(first, place)
        if hashlib.sha256(original).hexdigest() != place.original_sha256:
            raise DeployError(DeployRefusal.CHANGED,
                              f"{shown(full)} no longer holds the original "
                              f"{place.original_sha256}")
        alike = check_alike(original, substitute.data)
        if guard is not None:
            guard(place, *alike)
        data = _with(data, place, substitute.data)
        swaps[place.member] = _swap(place, substitute, now, swaps.get(place.member))
    after = hashlib.sha256(data).hexdigest()
    link = os.readlink(full) if linked else entry.link if entry is not None else None
    return Change(DeployedFile(path, hashlib.sha256(first).hexdigest(), after,
                               tuple(swaps.values()), _earlier(entry, after), link), before, data)


def _is_overlaid(tree: Tree, manifest: Manifest, path: str) -> bool:
    """Whether a file of an overlay is still the link to that of the base."""
    link = tree.root / path
    return (manifest.base is not None and os.path.islink(link)
            and os.readlink(link) == os.path.join(manifest.base, path))


def _check_writable(file: Path) -> None:
    if not writable(file.parent):
        raise DeployError(DeployRefusal.READ_ONLY, f"the folder of {shown(file)} is read-only")


def _earlier(entry: DeployedFile | None, after: str) -> tuple[str, ...]:
    if entry is None:
        return ()
    return tuple(h for h in dict.fromkeys((*entry.earlier, entry.deployed_sha256)) if h != after)


def _swap(place: Place, substitute: Substitute, now: str, before: Swap | None) -> Swap:
    sha256 = substitute.sha256
    time = before.time if before is not None and before.replacement_sha256 == sha256 else now
    return Swap(place.member, place.original_sha256, sha256, substitute.kernel, substitute.speedup,
                substitute.timing_source, substitute.device, substitute.statement_sha256, time)


def _object(data: bytes, place: Place) -> bytes:
    if place.member is None:
        return data
    try:
        return bytes(read_member(open_container(memoryview(data)), place.member.split("!")))
    except BundleError as error:
        raise DeployError(DeployRefusal.CONTAINER, f"{shown(place.name)}: {error}") from error


def _with(data: bytes, place: Place, replacement: bytes) -> bytes:
    if place.member is None:
        return replacement
    try:
        return replace_member(open_container(memoryview(data)), place.member.split("!"),
                              replacement)
    except BundleError as error:
        raise DeployError(DeployRefusal.CONTAINER, f"{shown(place.name)}: {error}") from error
