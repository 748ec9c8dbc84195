"""The manifest of a tree: which files hold replacements, and what they held first."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import read_file
from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.tree import STATE, Tree, unreadable, unwritable
from asmevo.durable import write_atomically

FORMAT = 1
NAME = "manifest.json"
SIZE_LIMIT = 64 << 20

_HASH = re.compile(r"[0-9a-f]{64}")
_SOURCES = ("measured", "modelled")


@dataclass(frozen=True, slots=True)
class Swap:
    """One code object that was exchanged; ``member`` is its place if the file is a container.

    ``time`` is when, in ISO 8601 and UTC. The rest is as in `Substitute`.
    """

    member: str | None
    original_sha256: str
    replacement_sha256: str
    kernel: str
    speedup: float
    timing_source: str
    device: str
    statement_sha256: str | None
    time: str


@dataclass(frozen=True, slots=True)
class DeployedFile:
    """A file whose content was exchanged.

    ``original_sha256`` is the hash of what it held first, ``deployed_sha256`` that of what it holds
    now or, after a crash, would have held next; ``earlier`` are those of deployments before. In an
    overlay the file took the place of a symbolic link to ``link``.
    """

    path: str
    original_sha256: str
    deployed_sha256: str
    swaps: tuple[Swap, ...]
    earlier: tuple[str, ...] = ()
    link: str | None = None

    def ours(self, sha256: str | None) -> bool:
        """Whether a deployment, this or an earlier one, has written content of that hash."""
        return sha256 == self.deployed_sha256 or sha256 in self.earlier


@dataclass(frozen=True, slots=True)
class Manifest:
    """All deployments on one tree; ``base`` is the tree that an overlay or copy was made from."""

    files: Mapping[str, DeployedFile] = field(default_factory=dict)
    kind: str = "file"
    base: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The document that is stored, and that ``deploy status --json`` prints."""
        return {"format": FORMAT, "kind": self.kind, "base": self.base,
                "files": [_file_json(f) for _, f in sorted(self.files.items())]}


def load_manifest(tree: Tree) -> Manifest:
    """The manifest of a tree; an empty one where nothing was deployed.

    Raises `DeployError` on anything that is not a manifest as it was written.
    """
    path = tree.state / NAME
    try:
        linked = any(stat.S_ISLNK(os.lstat(place).st_mode) for place in (tree.state, path))
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise unreadable(path, error) from error
    if linked:
        raise DeployError(DeployRefusal.MANIFEST,
                          f"{shown(path)} is, or lies behind, a symbolic link")
    try:
        document = json.loads(read_file(path, SIZE_LIMIT), parse_constant=_no_constant)
        return _manifest(document)
    except (SourceError, ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
        raise DeployError(DeployRefusal.MANIFEST,
                          f"{shown(path)} is not a deployment manifest") from error


def store_manifest(tree: Tree, manifest: Manifest) -> None:
    """Write the manifest, or remove that of a tree without deployments."""
    path = tree.state / NAME
    try:
        if manifest.files:
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, json.dumps(manifest.to_json(), indent=1, sort_keys=True,
                                              allow_nan=False).encode())
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def _file_json(file: DeployedFile) -> dict[str, Any]:
    return {"path": file.path, "original_sha256": file.original_sha256,
            "deployed_sha256": file.deployed_sha256, "earlier": list(file.earlier),
            "link": file.link, "swaps": [_swap_json(s) for s in file.swaps]}


def _swap_json(swap: Swap) -> dict[str, Any]:
    return {name: getattr(swap, name) for name in Swap.__slots__}


def _manifest(document: Any) -> Manifest:
    if document["format"] != FORMAT:
        raise ValueError("unknown format")
    base = _optional(document["base"])
    files = [_file(entry, base) for entry in _list(document["files"])]
    by_path = {file.path: file for file in files}
    if len(by_path) != len(files):
        raise ValueError("a file is listed twice")
    return Manifest(by_path, _text(document["kind"]), base)


def _file(entry: Any, base: str | None) -> DeployedFile:
    path, link = _text(entry["path"]), _optional(entry["link"])
    parts = path.split("/")
    if {"", ".", ".."} & set(parts) or parts[0] == STATE or "\0" in path:
        raise ValueError("not a path of the tree")
    if link is not None and (base is None or link != os.path.join(base, path)):
        raise ValueError("not a link of an overlay")
    return DeployedFile(
        path, _hash(entry["original_sha256"]), _hash(entry["deployed_sha256"]),
        tuple(_swap(s) for s in _list(entry["swaps"])),
        tuple(_hash(h) for h in _list(entry["earlier"])), link)


def _swap(entry: Any) -> Swap:
    speedup = entry["speedup"]
    if type(speedup) not in (int, float) or not math.isfinite(speedup):
        raise ValueError("a speedup is no number")
    if entry["timing_source"] not in _SOURCES:
        raise ValueError("a speedup is neither measured nor modelled")
    statement = entry["statement_sha256"]
    return Swap(_optional(entry["member"]), _hash(entry["original_sha256"]),
                _hash(entry["replacement_sha256"]), _text(entry["kernel"]), speedup,
                entry["timing_source"], _text(entry["device"]),
                None if statement is None else _hash(statement), _text(entry["time"]))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a string")
    return value


def _optional(value: Any) -> str | None:
    return None if value is None else _text(value)


def _hash(value: Any) -> str:
    if not _HASH.fullmatch(_text(value)):
        raise ValueError("not a SHA-256")
    return str(value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
