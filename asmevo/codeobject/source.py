"""Where a code object comes from."""

from __future__ import annotations

import importlib.metadata
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Protocol

from asmevo.codeobject.errors import SourceError

SIZE_LIMIT = 256 << 20


class Source(Protocol):
    """Something that yields the bytes of a code object."""

    def read(self) -> bytes:
        """The bytes. Raises `SourceError` with one sentence when they cannot be had."""
        ...

    def describe(self) -> str:
        """A short name for reports and the registry."""
        ...


@dataclass(frozen=True)
class LocalFile:
    """A file on this machine; ``~`` stands for the home directory.

    ``hint`` says where the file comes from, should it be missing.
    """

    path: str
    hint: str | None = None

    def read(self) -> bytes:
        path = Path(self.path).expanduser()
        if self.hint is not None and not path.exists():
            raise SourceError(f"there is no file '{self.path}': {self.hint}")
        return read_file(path)

    def describe(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class InstalledFile:
    """A file of an installed Python distribution, found without importing any of its packages.

    ``path`` is relative to the installation directory, as the wheel's RECORD lists it. ``extra`` is
    the extra of AsmEvo that installs the distribution.
    """

    distribution: str
    path: str
    extra: str = "kernels"

    def read(self) -> bytes:
        return read_file(self.locate())

    def locate(self) -> Path:
        """Where the file is. Raises `SourceError` when it is not installed."""
        try:
            distribution = importlib.metadata.distribution(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            raise SourceError(
                f"kernel '{self.path}' needs the Python package '{self.distribution}' "
                f"(pip install 'asmevo[{self.extra}]')"
            ) from None
        wanted = PurePosixPath(self.path)
        for file in distribution.files or ():
            if PurePosixPath(file) == wanted:
                return Path(str(distribution.locate_file(file)))
        raise SourceError(f"the installed package '{self.distribution}' {distribution.version} has "
                          f"no file '{self.path}'")

    def describe(self) -> str:
        return f"{self.distribution}:{self.path}"


@dataclass(frozen=True)
class FirstOf:
    """The first of several sources that has the object, in the order given."""

    sources: Sequence[Source]

    def read(self) -> bytes:
        """The bytes. Raises `SourceError` with what every source says when none has them."""
        return self._found()[1]

    def describe(self) -> str:
        """The source that has the object, or all of them."""
        try:
            return self._found()[0].describe()
        except SourceError:
            return " or ".join(source.describe() for source in self.sources)

    def _found(self) -> tuple[Source, bytes]:
        complaints = []
        for source in self.sources:
            try:
                return source, source.read()
            except SourceError as error:
                complaints.append(str(error))
        raise SourceError("; ".join(complaints) or "there is no source to read from")


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; raises `SourceError` for anything else."""
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError:
        raise SourceError(f"{str(path)!r} is not a file name") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise SourceError(f"'{path}' is {kind}")
    return os.fdopen(descriptor, "rb")


def read_file(path: Path, limit: int | None = None) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes (`SIZE_LIMIT`); raises `SourceError`.
    """
    limit = SIZE_LIMIT if limit is None else limit
    with open_regular(path) as file:
        try:
            data = file.read(limit + 1)
        except OSError as error:
            raise _unreadable(path, error) from None
    if len(data) > limit:
        raise SourceError(f"'{path}' is larger than {limit >> 20} MiB")
    return data


def _unreadable(path: Path, error: OSError) -> SourceError:
    reason = (error.strerror or type(error).__name__).lower()
    return SourceError(f"cannot read '{path}': {reason}")
