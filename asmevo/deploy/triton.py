"""Triton's cache: what it loads of an entry, and what must hold for a replacement to be loaded.

A compiled kernel is a folder ``<BASE32 of a hash>`` with ``__grp__<name>.json``, which lists the
absolute path of each of its files; the ``.hsaco`` among them has no checksum, and kernel name, LDS
size and number of warps come out of ``<name>.json`` (Triton 3.9, ``runtime/cache.py`` and
``compiler/compiler.py``). Triton checks none of it against the object: that is done here.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.errors import CodeObjectError, SourceError
from asmevo.codeobject.occupancy import compute_unit
from asmevo.codeobject.requirements import code_use
from asmevo.codeobject.source import read_file
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.places import Place
from asmevo.deploy.tree import Tree

SUFFIX = ".hsaco"
GROUP = "__grp__"
JSON_LIMIT = 4 << 20
"""The largest group or metadata file, in bytes, that is read."""

TEMPORARY = "tmp.pid_"
"""How the names of folders begin into which Triton writes before it renames a file."""

# FileCacheManager.put writes into such a folder and removes it at once; what is older was killed.
_WRITING_S = 60.0


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """What Triton takes out of an entry's JSON: names, and bytes of LDS that a launch adds."""

    group: Path
    kernel: str
    arch: str
    shared: int


@dataclass(frozen=True, slots=True)
class TritonCache:
    """A cache as a target. While a copy is being made, it will be ``seen_as`` that path."""

    seen_as: Path | None = None
    kind: str = "triton"
    containers: bool = False

    def covers(self, path: str) -> bool:
        return path.endswith(SUFFIX)

    def guard(self, tree: Tree, place: Place, original: CodeObject,
              replacement: CodeObject) -> None:
        """Triton will load the object, and its JSON says what is right for it too."""
        file = tree.root / place.path
        check_idle(file.parent)
        check_metadata(self.entry(tree, file), file, original, replacement)

    def entry(self, tree: Tree, file: Path) -> CacheEntry:
        """The entry that makes Triton load an HSACO.

        Raises `DeployError` when Triton would not load this file: it would compile the kernel anew
        (and so undo a deployment), or load another file.
        """
        groups = [(path, paths) for path in sorted(file.parent.glob(f"{GROUP}*.json"))
                  if file.name in (paths := child_paths(path))]
        if len(groups) != 1:
            raise _incomplete(file, f"{len(groups) or 'no'} group files of Triton's name it, not 1")
        group, paths = groups[0]
        places = {name: self._place(tree, path) for name, path in paths.items()}
        if os.path.realpath(places[file.name]) != os.path.realpath(file):
            raise _incomplete(file, f"its group file makes Triton load {shown(paths[file.name])} "
                                    "instead; was the cache moved?")
        missing = next((name for name, path in places.items() if not path.exists()), None)
        if missing is not None:
            raise _incomplete(file, f"{shown(missing)} of its group is missing, so Triton would "
                                    "compile the kernel anew")
        metadata = next((path for name, path in places.items() if name.endswith(".json")), None)
        if metadata is None:
            raise _incomplete(file, "its group file names no metadata")
        return _entry(group, metadata)

    def _place(self, tree: Tree, path: str) -> Path:
        given = Path(path)
        if self.seen_as is not None and given.is_relative_to(self.seen_as):
            return tree.root / given.relative_to(self.seen_as)
        return given


def check_idle(folder: Path) -> None:
    """Raises `DeployError` while Triton is writing to an entry."""
    for temporary in folder.glob(f"{TEMPORARY}*"):
        try:
            age = time.time() - temporary.stat().st_mtime
        except FileNotFoundError:
            continue
        if age < _WRITING_S:
            raise DeployError(DeployRefusal.BUSY,
                              f"Triton is writing to {shown(folder)} at the moment")


def check_metadata(entry: CacheEntry, file: Path, original: CodeObject,
                   replacement: CodeObject) -> None:
    """Raises `DeployError` when the object is not what the entry's JSON makes of it."""
    isa = replacement.target.isa
    if entry.arch.partition(":")[0] != isa:
        raise DeployError(DeployRefusal.METADATA,
                          f"the metadata beside {shown(file)} is for {shown(entry.arch)}, the "
                          f"object for {isa}")
    try:
        before, after = original.kernel(entry.kernel), replacement.kernel(entry.kernel)
    except CodeObjectError as error:
        raise DeployError(DeployRefusal.METADATA,
                          f"the metadata beside {shown(file)} launches kernel "
                          f"{shown(entry.kernel)}, which is not in the object") from error
    _check_lds(entry, file, original, before, replacement, after)


def _check_lds(entry: CacheEntry, file: Path, original: CodeObject, before: Kernel,
               replacement: CodeObject, after: Kernel) -> None:
    """Dynamic LDS comes out of the JSON, which stays: the replacement must do with as much."""
    had = before.descriptor.group_segment_fixed_size + entry.shared
    needs = after.descriptor.group_segment_fixed_size + entry.shared
    most = compute_unit(replacement.target.isa).lds_bytes
    if needs > max(had, 0) or needs > most:
        raise DeployError(DeployRefusal.LDS,
                          f"the replacement for {shown(file)} would be launched with {needs} bytes "
                          f"of LDS, the original with {had}, a compute unit has {most}")
    if replacement.code(after) == original.code(before):
        return
    reach, old = (code_use(o, k).segments.group
                  for o, k in ((replacement, after), (original, before)))
    if reach.proven > max(had, old.proven) or reach.likely > max(had, old.likely):
        raise DeployError(DeployRefusal.LDS,
                          f"the replacement for {shown(file)} reaches byte "
                          f"{max(reach.proven, reach.likely)} of LDS, its metadata provides {had}")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of the cache; raises `DeployError` on anything else."""
    try:
        found = json.loads(read_file(path, JSON_LIMIT))
    except (SourceError, ValueError, RecursionError) as error:
        raise DeployError(DeployRefusal.INCOMPLETE,
                          f"{shown(path)} is not a JSON file that Triton wrote") from error
    if not isinstance(found, dict):
        raise DeployError(DeployRefusal.INCOMPLETE, f"{shown(path)} does not hold a JSON object")
    return found


def child_paths(group: Path) -> dict[str, str]:
    """What a group file lists: the path of each file by its name. Raises `DeployError`."""
    children = read_json(group).get("child_paths")
    if not isinstance(children, dict) or not all(
            isinstance(path, str) and "\0" not in path for path in children.values()):
        raise DeployError(DeployRefusal.INCOMPLETE,
                          f"the group file {shown(group)} lists no paths")
    return children


def _entry(group: Path, metadata: Path) -> CacheEntry:
    document = read_json(metadata)
    target, kernel, shared = (document.get(key) for key in ("target", "name", "shared"))
    arch = target.get("arch") if isinstance(target, dict) else None
    if not (isinstance(arch, str) and isinstance(kernel, str) and type(shared) is int
            and shared >= 0):
        raise DeployError(DeployRefusal.METADATA,
                          f"{shown(metadata)} lacks the kernel's name, architecture or LDS size")
    return CacheEntry(group, kernel, arch, shared)


def _incomplete(file: Path, why: str) -> DeployError:
    return DeployError(DeployRefusal.INCOMPLETE, f"{shown(file)}: {why}")
