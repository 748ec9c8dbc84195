"""Where a code object comes from."""

from __future__ import annotations

import importlib.metadata
import os
import stat
from dataclasses import dataclass
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
    """A file on this machine; ``~`` stands for the home directory."""

    path: str

    def read(self) -> bytes:
        return _read(Path(self.path).expanduser())

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
                return _read(Path(str(distribution.locate_file(file))))
        raise SourceError(f"the installed package '{self.distribution}' {distribution.version} has "
                          f"no file '{self.path}'")

    def describe(self) -> str:
        return f"{self.distribution}:{self.path}"


def _read(path: Path) -> bytes:
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
                raise SourceError(f"'{path}' is {kind}")
            data = file.read(SIZE_LIMIT + 1)
    except ValueError:
        raise SourceError(f"{str(path)!r} is not a file name") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SourceError(f"cannot read '{path}': {reason}") from None
    if len(data) > SIZE_LIMIT:
        raise SourceError(f"'{path}' is larger than {SIZE_LIMIT >> 20} MiB")
    return data
