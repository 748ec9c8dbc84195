"""A tree built beside another one, which appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from asmevo.deploy.errors import DeployError, DeployRefusal, shown
from asmevo.deploy.tree import unwritable, writable
from asmevo.durable import sync_folder


def check_destination(source: Path, destination: Path) -> Path:
    """The absolute path of a tree to be made; ``source`` is free of symbolic links.

    Raises `DeployError` when something is there already, or when one would lie in the other.
    """
    try:
        parent = destination.expanduser().absolute().parent.resolve(strict=True)
        target = parent / destination.name
        taken = os.path.lexists(target)
    except (OSError, RuntimeError, ValueError) as error:
        raise DeployError(DeployRefusal.DESTINATION,
                          f"{shown(destination)} lies in no folder that exists") from error
    if taken or not destination.name:
        raise DeployError(DeployRefusal.DESTINATION,
                          f"{shown(destination)} exists already; deploy to it in place instead")
    if target.is_relative_to(source):
        raise DeployError(DeployRefusal.DESTINATION,
                          f"{shown(destination)} lies inside of {shown(source)}")
    if not writable(parent):
        raise DeployError(DeployRefusal.READ_ONLY, f"the folder {shown(parent)} is read-only")
    return target


@dataclass(slots=True)
class Beside:
    """A folder in the making; without ``keep`` it is removed again."""

    folder: Path
    keep: bool = False


@contextmanager
def built_beside(target: Path) -> Iterator[Beside]:
    """A temporary folder that becomes ``target`` at the end of the block if it is to be kept.

    A killed process leaves it behind under a hidden name ending in ``.tmp``.
    """
    beside = Beside(target.parent / f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        beside.folder.mkdir()
        yield beside
        if beside.keep:
            # Renaming onto an empty folder would succeed, and one may have come up meanwhile.
            if os.path.lexists(target):
                raise DeployError(DeployRefusal.DESTINATION, f"{shown(target)} exists already")
            beside.folder.rename(target)
            sync_folder(target.parent)
    except OSError as error:
        raise unwritable(target, error) from error
    finally:
        shutil.rmtree(beside.folder, ignore_errors=True)
