"""Where a tree holds code objects, and which originals they are or took the place of."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from asmevo.bundle.find import MemberReader, find_objects
from asmevo.bundle.open import HEAD, is_code_object, may_contain
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import open_regular, read_file
from asmevo.deploy.manifest import DeployedFile, Manifest
from asmevo.deploy.tree import Tree


@dataclass(frozen=True, slots=True)
class Place:
    """A code object in a tree: a file, or a ``member`` of one.

    ``original_sha256`` is the hash of what was there before any deployment. A ``link`` is a
    symbolic link that leads out of the tree.
    """

    path: str
    member: str | None
    original_sha256: str
    link: bool = False

    @property
    def name(self) -> str:
        return self.path if self.member is None else f"{self.path}!{self.member}"


def find_places(tree: Tree, manifest: Manifest, *, containers: bool = False,
                only: Callable[[str], bool] = lambda path: True) -> Iterator[Place]:
    """Every code object in the files that ``only`` accepts; what cannot be read is left out.

    Members of containers (fat binaries, bundles, archives) are found only if asked for.
    """
    for path in tree.files():
        if not only(path):
            continue
        full = tree.root / path
        link = os.path.realpath(full) != str(full)
        if link and Path(os.path.realpath(full)).is_relative_to(tree.root):
            continue  # found under its own name
        entry = manifest.files.get(path)
        try:
            with open_regular(full) as file:
                start = file.read(HEAD)
            if is_code_object(start):
                sha256 = hashlib.sha256(read_file(full)).hexdigest()
                yield Place(path, None, first_of(entry, None, sha256), link)
            elif containers and may_contain(start):
                yield from _members(full, path, entry, link)
        except SourceError:
            continue


def _members(full: Path, path: str, entry: DeployedFile | None, link: bool) -> Iterator[Place]:
    for found in find_objects(full):
        if isinstance(found.read, MemberReader):
            member = "!".join(found.read.parts)
            try:
                sha256 = hashlib.sha256(found.read()).hexdigest()
            except SourceError:
                continue
            yield Place(path, member, first_of(entry, member, sha256), link)


def first_of(entry: DeployedFile | None, member: str | None, sha256: str) -> str:
    """The original that an object is, or that it replaced according to the manifest."""
    for swap in entry.swaps if entry is not None else ():
        if swap.member == member and swap.replacement_sha256 == sha256:
            return swap.original_sha256
    return sha256
