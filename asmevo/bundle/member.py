"""Code objects inside other files, as a source to work on and as a place to put a result."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from asmevo.bundle.container import SEPARATOR
from asmevo.bundle.elf_sections import is_elf64
from asmevo.bundle.errors import BundleError, ReplacementError
from asmevo.bundle.kernels import kernel_symbols
from asmevo.bundle.open import is_code_object, open_file, read_member, replace_member
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import InstalledFile
from asmevo.durable import write_atomically

_E_FLAGS = slice(48, 52)
_ABI = slice(7, 9)


@dataclass(frozen=True)
class Member:
    """A code object inside a file on this machine.

    ``member`` is its path as `find_objects` names it, e.g. ``hip_fatbin[3]!gfx942``; a processor is
    enough where only one entry of the bundle is for it, and the name of a file's only bundle may be
    left out.
    """

    path: str
    member: str

    @classmethod
    def parse(cls, text: str) -> Member:
        """Split ``libfoo.so!hip_fatbin[0]!gfx942`` at the end of the part that is a file."""
        position = text.find(SEPARATOR)
        while position >= 0:
            if Path(text[:position]).expanduser().is_file():
                return cls(text[:position], text[position + 1:])
            position = text.find(SEPARATOR, position + 1)
        raise SourceError(f"no part of '{text}' before a '{SEPARATOR}' is a file")

    def read(self) -> bytes:
        """The code object. Raises `BundleError` when there is none of that name."""
        try:
            content = read_member(open_file(self._file()), self._parts())
        except BundleError as error:
            raise BundleError(f"'{self.describe()}': {error}") from error
        if not is_code_object(content[:64]):
            raise BundleError(f"'{self.describe()}' is not a code object")
        return bytes(content)

    def describe(self) -> str:
        return f"{self.path}{SEPARATOR}{self.member}"

    def replaced(self, content: bytes) -> bytes:
        """The bytes of the whole file with another code object in this one's place.

        Raises `ReplacementError` when the new one is for another processor, lacks a kernel of the
        old one, or does not fit; in particular files inside a zip file cannot be replaced.
        """
        original = self.read()
        try:
            _check_replacement(original, content)
            return replace_member(open_file(self._file()), self._parts(), content)
        except BundleError as error:
            raise type(error)(f"'{self.describe()}': {error}") from error

    def replace(self, content: bytes, output: Path | None = None) -> None:
        """Write the file of `replaced` to ``output``, or over the original; all of it or nothing.

        The file mode is kept. Raises `SourceError` when it cannot be written.
        """
        data = self.replaced(content)
        source = self._file().resolve()
        target = source if output is None else output
        try:
            write_atomically(target, data, mode=stat.S_IMODE(source.stat().st_mode))
        except OSError as error:
            raise SourceError(f"cannot write '{target}': {(error.strerror or '').lower()}"
                              ) from error

    def _file(self) -> Path:
        return Path(self.path).expanduser()

    def _parts(self) -> tuple[str, ...]:
        return tuple(self.member.split(SEPARATOR))


@dataclass(frozen=True)
class InstalledMember:
    """A code object inside a file of an installed Python distribution (see `InstalledFile`)."""

    distribution: str
    path: str
    member: str
    extra: str = "kernels"

    def read(self) -> bytes:
        file = InstalledFile(self.distribution, self.path, self.extra).locate()
        return Member(str(file), self.member).read()

    def describe(self) -> str:
        return f"{self.distribution}:{self.path}{SEPARATOR}{self.member}"


def _check_replacement(original: bytes, content: bytes) -> None:
    if not is_elf64(memoryview(content)) or not is_code_object(content):
        raise ReplacementError("the replacement is not a code object")
    if (content[_E_FLAGS], content[_ABI]) != (original[_E_FLAGS], original[_ABI]):
        raise ReplacementError("the replacement is for another processor, target feature or code "
                               "object version than the original")
    wanted = kernel_symbols(memoryview(original))
    try:
        kernels = set(kernel_symbols(memoryview(content)))
    except BundleError as error:
        raise ReplacementError(f"the replacement is damaged: {error}") from error
    missing = [kernel for kernel in wanted if kernel not in kernels]
    if missing:
        raise ReplacementError(f"the replacement lacks {len(missing)} kernels of the original, "
                               f"'{missing[0]}' among them")
