"""Every code object below a path: in directories, wheels, archives, host libraries, bundles."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from asmevo.bundle.container import SEPARATOR, Container
from asmevo.bundle.errors import BundleError
from asmevo.bundle.fat_bundle import FatBundle
from asmevo.bundle.open import DEPTH_LIMIT, HEAD, descend, is_code_object, may_contain, open_file
from asmevo.bundle.wheel import Wheel
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import open_regular, read_file

_HOST = "host"


@dataclass(frozen=True, slots=True)
class FoundObject:
    """One code object; ``read`` gives its bytes or raises `SourceError` saying why it cannot.

    ``name`` is relative to the path searched, with ``!`` between a container and its member:
    ``lib/libfoo.so!hip_fatbin[3]!gfx942``. ``read`` can be pickled.
    """

    name: str
    read: Callable[[], bytes]


def find_objects(path: Path) -> Iterator[FoundObject]:
    """Code objects of every processor, in a stable order; files of other kinds are left out.

    The files of a wheel have their names inside it, like those of a directory. What is damaged or
    not read (a thin archive, an LLVM bitcode entry) is found too, and its ``read`` says why.
    Raises `SourceError` when ``path`` itself cannot be read or is no container.
    """
    path = Path(path)
    if path.is_dir():
        return _in_directory(path)
    with open_regular(path) as file:
        start = file.read(HEAD)
    if is_code_object(start):
        return iter((FoundObject(path.name, _File(path)),))
    try:
        container = open_file(path)
    except BundleError as error:
        raise type(error)(f"'{path}': {error}") from error
    return _below(path, (), "" if isinstance(container, Wheel) else path.name, container)


def opened(path: Path, parts: tuple[str, ...]) -> Container:
    """The container at the end of a member path (the file itself for no parts).

    The containers along the most recent path stay open, so that reading the members of a file one
    after another neither reads the file nor decompresses a bundle again. Raises `SourceError`.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise SourceError(f"cannot read '{path}': {(error.strerror or '').lower()}") from None
    # A forked child shares file offsets with its parent, and so must not share open files.
    file = (os.getpid(), path, status.st_ino, status.st_size, status.st_mtime_ns)
    if _recent.file != file:
        _recent.file, _recent.containers, _recent.parts = None, [], ()
        _recent.containers = [open_file(path)]
        _recent.file = file
    same = (old == new for old, new in zip(_recent.parts, parts, strict=False))
    shared = sum(itertools.takewhile(bool, same))
    containers = _recent.containers[:shared + 1]
    # Let go of what the last path had before decompressing anything for this one.
    _recent.containers, _recent.parts = containers, parts[:len(containers) - 1]
    if len(parts) >= len(containers):
        containers = descend(containers[0], (*parts, ""), containers)
    _recent.containers, _recent.parts = containers, parts
    return containers[len(parts)]


class _Recent(threading.local):
    """The containers along the path that this thread read last."""

    def __init__(self) -> None:
        self.file: tuple[int, Path, int, int, int] | None = None
        self.containers: list[Container] = []
        self.parts: tuple[str, ...] = ()


_recent = _Recent()


@dataclass(frozen=True, slots=True)
class _File:
    path: Path

    def __call__(self) -> bytes:
        return read_file(self.path)


@dataclass(frozen=True, slots=True)
class MemberReader:
    """Reads the object at the end of a path of member names in a file."""

    path: Path
    parts: tuple[str, ...]

    @property
    def container(self) -> Container:
        """What the object is directly inside of."""
        return opened(self.path, self.parts[:-1])

    def __call__(self) -> bytes:
        return bytes(self.container.read(self.parts[-1]))


@dataclass(frozen=True, slots=True)
class _Refused:
    reason: str

    def __call__(self) -> bytes:
        raise BundleError(self.reason)


def _in_directory(root: Path) -> Iterator[FoundObject]:
    seen: set[tuple[int, int]] = set()
    unreadable: list[OSError] = []
    for folder, folders, files in os.walk(root, onerror=unreadable.append):
        folders.sort()
        for error in unreadable:
            yield FoundObject(os.path.relpath(str(error.filename), root),
                              _Refused(f"cannot read the directory: {error.strerror}"))
        unreadable.clear()
        for file in sorted(files):
            path = Path(folder, file)
            name = path.relative_to(root).as_posix()
            try:
                with open_regular(path) as opened_file:
                    status = os.fstat(opened_file.fileno())
                    start = opened_file.read(HEAD)
            except SourceError as error:
                if path.is_file():
                    yield FoundObject(name, _Refused(str(error)))
                continue
            # libfoo.so is usually a link to libfoo.so.1 beside it.
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            if is_code_object(start):
                yield FoundObject(name, _File(path))
            elif may_contain(start):
                yield from _below(path, (), name)


def _below(path: Path, parts: tuple[str, ...], prefix: str,
           container: Container | None = None) -> Iterator[FoundObject]:
    """The objects inside one container; ``prefix`` is its own name."""
    try:
        container = container or opened(path, parts)
    except SourceError as error:
        yield FoundObject(prefix, _Refused(str(error)))
        return
    for name in container.names:
        full = f"{prefix}{SEPARATOR}{name}" if prefix else name
        inner = (*parts, name)
        try:
            start = container.start(name)
        except SourceError as error:
            yield FoundObject(full, _Refused(str(error)))
            continue
        if is_code_object(start):
            yield FoundObject(full, MemberReader(path, inner))
        elif may_contain(start):
            if len(inner) == DEPTH_LIMIT:
                yield FoundObject(full, _Refused(f"containers nest deeper than {DEPTH_LIMIT} "
                                                 "levels"))
            else:
                yield from _below(path, inner, full)
        elif start and isinstance(container, FatBundle) and container.entry(name).kind != _HOST:
            yield FoundObject(full, _Refused("the bundle entry is not a linked code object but "
                                             f"{_described(start)}"))


def _described(start: bytes) -> str:
    if start.startswith(b"BC\xc0\xde"):
        return "LLVM bitcode"
    if start.startswith(b"\x03\x02\x23\x07"):
        return "SPIR-V"
    return "unknown data"
