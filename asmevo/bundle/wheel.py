"""Wheels and other zip files, read one file at a time."""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import BinaryIO

from asmevo.bundle.container import listed, quote, unique
from asmevo.bundle.errors import BundleError, ReplacementError

MAGIC = b"PK\x03\x04"
FILE_LIMIT = 1 << 30
DIRECTORY_LIMIT = 64 << 20
NAME_LIMIT = 1024
# The most that deflate can make of its input.
RATIO_LIMIT = 1032

_START = 64
_END = struct.Struct("<4s4xHHIIH")
_END_MAGIC, _ZIP64_MAGIC = b"PK\x05\x06", b"PK\x06\x07"
_ZIP64_LOCATOR_SIZE = 20
_COMMENT_LIMIT = 1 << 16
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError,
           RuntimeError, OSError, struct.error)


class Wheel:
    """The files of a zip archive, named by their paths inside."""

    def __init__(self, file: BinaryIO) -> None:
        """Read the directory of ``file``, which stays in use. Raises `BundleError`."""
        try:
            size = _check_directory(file)
            self._archive = zipfile.ZipFile(file)
        except _DAMAGE as error:
            raise BundleError(f"the zip file is damaged: {_reason(error)}") from None
        files = [info for info in self._archive.infolist() if not info.filename.endswith("/")]
        for info in files:
            if not 0 < len(info.filename) <= NAME_LIMIT or not info.filename.isprintable():
                raise BundleError("the zip file has a file with the malformed name "
                                  f"{info.filename[:80]!r}")
        # Overlapping members, each of them small in the file, would keep us busy.
        if sum(info.file_size for info in files) > RATIO_LIMIT * size:
            raise BundleError(f"the zip file claims to hold more than {RATIO_LIMIT} times its own "
                              "size")
        names = unique([quote(info.filename) for info in files])
        self._files = dict(zip(names, files, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._files)

    def start(self, name: str) -> bytes:
        return self._read(name, _START)

    def read(self, name: str) -> memoryview:
        info = self._file(name)
        if info.file_size > FILE_LIMIT:
            raise BundleError(f"'{name}' in the zip file is larger than {FILE_LIMIT >> 20} MiB")
        return memoryview(self._read(name, info.file_size + 1))

    def room(self, name: str) -> int | None:
        return 0

    def replaced(self, name: str, content: bytes, limit: int | None) -> bytes:
        raise ReplacementError("a file inside a wheel or zip file cannot be replaced: its RECORD "
                               "would no longer match; install or unpack it first")

    def _file(self, name: str) -> zipfile.ZipInfo:
        if name not in self._files:
            raise BundleError(f"the zip file has no file '{name[:NAME_LIMIT]}'; its files: "
                              f"{listed(self.names)}")
        return self._files[name]

    def _read(self, name: str, size: int) -> bytes:
        info = self._file(name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BundleError(f"'{name}' in the zip file is compressed by method "
                              f"{info.compress_type}, which AsmEvo does not read")
        try:
            with self._archive.open(info) as file:
                return file.read(size)
        except _DAMAGE as error:
            raise BundleError(f"'{name}' in the zip file is damaged: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """One short line: these errors quote names from the file."""
    return " ".join(str(error).split())[:160] or type(error).__name__


def _check_directory(file: BinaryIO) -> int:
    """Bound what `zipfile.ZipFile` will read: it trusts the size of the central directory.

    Returns the size of the file.
    """
    end = file.seek(0, 2)
    file.seek(max(0, end - _END.size - _COMMENT_LIMIT - _ZIP64_LOCATOR_SIZE))
    tail = file.read()
    position = tail.rfind(_END_MAGIC)
    if position < 0 or position + _END.size > len(tail):
        raise BundleError("the zip file is truncated: it has no directory")
    if tail[:position][-_ZIP64_LOCATOR_SIZE:].startswith(_ZIP64_MAGIC):
        raise BundleError("the zip file has a ZIP64 directory, which AsmEvo does not read")
    directory = _END.unpack_from(tail, position)[3]
    if directory > DIRECTORY_LIMIT:
        raise BundleError(f"the zip file's directory has {directory} bytes, more than "
                          f"{DIRECTORY_LIMIT >> 20} MiB")
    return end
