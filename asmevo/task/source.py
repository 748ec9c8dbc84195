"""What ``source=`` and ``original=`` name: one code object, or everything in a place."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from asmevo.bundle.container import SEPARATOR
from asmevo.bundle.find import FoundObject, find_objects
from asmevo.bundle.member import InstalledMember, Member
from asmevo.bundle.open import HEAD, is_code_object, may_contain
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import InstalledFile, LocalFile, Source, open_regular
from asmevo.task.session import ConfigError, Session

_SUFFIXES = (".co", ".hsaco")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def one(name: str) -> Source:
    """The source of one code object.

    ``name`` is a path or ``<distribution>:<file of an installed wheel>``, and for an object inside
    a container ``!<member>`` behind either. A path that exists is always taken as one. Raises
    `SourceError` for an empty name; reading tells the rest.
    """
    if not name:
        raise SourceError("the source has no name")
    if _exists(name):
        return LocalFile(name)
    path, mark, member = name.partition(SEPARATOR)
    distribution, colon, file = path.partition(":")
    if colon and _DISTRIBUTION.fullmatch(distribution) and not _exists(path):
        if mark:
            return InstalledMember(distribution, file, member)
        return InstalledFile(distribution, file)
    return Member.parse(name) if mark else LocalFile(name)


def stem(source: Source) -> str:
    """A file name, without suffix, for what is made of a source."""
    last = re.split(rf"[/:{SEPARATOR}]", source.describe().rstrip(f"/:{SEPARATOR}"))[-1]
    for suffix in _SUFFIXES:
        last = last.removesuffix(suffix)
    return re.sub(r"[^\w.+-]", "_", last).strip(".")[:128] or "object"


def everything(place: str) -> Iterator[FoundObject]:
    """Every code object in a directory, archive, wheel, file or installed distribution.

    Raises `SourceError` when there is no such place.
    """
    if _exists(place):
        try:
            yield from find_objects(Path(place).expanduser())
        except SourceError as error:
            # One damaged container must not keep the others from being checked.
            yield FoundObject(Path(place).name, functools.partial(_refuse, error))
    elif (distribution := _installed(place)) is not None:
        yield from _in_distribution(distribution)
    else:
        single = one(place)
        if isinstance(single, LocalFile):
            raise SourceError(f"'{place}' is no file, directory or installed Python package")
        yield FoundObject(stem(single), single.read)


def corpus_name(place: str) -> str:
    """What a table calls a place: its own name, without where it lies on this machine."""
    if not _exists(place) and (distribution := _installed(place)) is not None:
        return f"{place} {distribution.version}"
    return Path(place).name or place


def _in_distribution(distribution: importlib.metadata.Distribution) -> Iterator[FoundObject]:
    for file in sorted(distribution.files or (), key=str):
        path = Path(str(distribution.locate_file(file)))
        if not path.is_file():  # what is listed may be gone, like compiled Python files
            continue
        try:
            with open_regular(path) as opened:
                start = opened.read(HEAD)
            if not is_code_object(start) and not may_contain(start):
                continue
            found = list(find_objects(path))
        except SourceError as error:
            yield FoundObject(PurePosixPath(file).as_posix(), functools.partial(_refuse, error))
            continue
        folder = PurePosixPath(file).parent
        for each in found:
            yield FoundObject((folder / each.name).as_posix(), each.read)


def _refuse(error: SourceError) -> bytes:
    raise error


def _exists(name: str) -> bool:
    try:
        return os.path.lexists(Path(name).expanduser())
    except (ValueError, RuntimeError):  # a null byte, no such user
        return False


def _installed(name: str) -> importlib.metadata.Distribution | None:
    if not _DISTRIBUTION.fullmatch(name):
        return None
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def named(session: Session) -> Source:
    """What ``source=`` names, or else the configured kernel's object."""
    return _chosen(session, "source")


def original(session: Session) -> Source:
    """What ``original=`` names, or else the configured kernel's object."""
    return _chosen(session, "original")


def _chosen(session: Session, key: str) -> Source:
    name = session.config[key]
    if name is None:
        return session.kernel.source
    if not isinstance(name, str):
        raise ConfigError(f"{key} has to be the name of one code object")
    return one(name)
