"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, data: bytes, *, overwrite: bool = True,
                     mode: int | None = None, owner: tuple[int, int] | None = None) -> None:
    """Make ``path`` hold ``data``, or leave it as it was; durable when this returns.

    ``mode`` are the file's permission bits; by default the process's usual ones. ``owner`` are the
    user and group ID it shall belong to, as far as the process may say so.

    Raises `OSError`; in particular `FileExistsError` if ``path`` exists and not ``overwrite``.
    """
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        try:
            if owner is not None:
                _give_to(descriptor, *owner)
            if mode is not None:
                os.fchmod(descriptor, mode)
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view):]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if overwrite:
            _check_replaceable(path)
            temporary.replace(path)
        else:
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file to be written piece by piece, which is at ``path`` once that ended without an error.

    As with `write_atomically` it is durable then. Raises `OSError`.
    """
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            _check_replaceable(path)
            temporary.replace(path)
        else:
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def _check_replaceable(path: Path) -> None:
    """A privileged process could put a file in the place of /dev/null, for everybody."""
    if path.exists() and not path.is_file() and not path.is_dir():  # rename refuses a folder itself
        raise OSError(errno.EINVAL, "it is a device, pipe or socket", str(path))


def _give_to(descriptor: int, user: int, group: int) -> None:
    """Only a privileged process may give files away; others at most to a group of their own."""
    for ids in ((user, group), (-1, group)):
        with suppress(PermissionError):
            os.fchown(descriptor, *ids)
            return


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and what is missing above it, with durable names. Raises `OSError`."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        sync_folder(made.parent)
