"""Kernels in HIP, compiled without ROCm when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from asmevo.codeobject.errors import AssemblerError, SourceError, ToolchainError
from asmevo.codeobject.source import read_file
from asmevo.codeobject.target import Target

_SIZE_LIMIT = 1 << 20


class HipCompiler(Protocol):
    """A toolchain that compiles HIP as well."""

    def compile_hip(self, source: str, headers: Mapping[str, str], target: Target) -> str: ...

    def assemble(self, text: str, target: Target) -> bytes: ...

    def link(self, relocatable: bytes, *, version_comment: str | None = None) -> bytes: ...


@dataclass(frozen=True)
class HipSource:
    """A HIP file, compiled at -O3 to one code object.

    ``path`` is that of a file, or within ``package`` when that is given. It may include the headers
    (``*.hpp``) of ``package``, or those beside it, and nothing else: there is no HIP runtime.
    """

    path: str
    toolchain: HipCompiler
    package: str | None = None
    processor: str = "gfx942"

    def read(self) -> bytes:
        return self._compiled

    @cached_property
    def _compiled(self) -> bytes:
        folder, file = self._places()
        headers = {header.name: _text(header) for header in sorted(folder.glob("*.hpp"))}
        target = Target(self.processor)
        try:
            text = self.toolchain.compile_hip(_text(file), headers, target)
            return self.toolchain.link(self.toolchain.assemble(text, target))
        except (AssemblerError, ToolchainError) as error:
            raise SourceError(f"'{self.describe()}' cannot be compiled: {error}") from error

    def describe(self) -> str:
        return self.path if self.package is None else f"{self.package}:{self.path}"

    def _places(self) -> tuple[Path, Path]:
        """The folder of the headers, and the file."""
        if self.package is None:
            file = Path(self.path).expanduser()
            return file.parent, file
        try:
            folder = Path(str(files(self.package)))
        except ModuleNotFoundError:
            raise SourceError(f"there is no package '{self.package}'") from None
        return folder, folder / self.path


def _text(path: Path) -> str:
    try:
        return read_file(path, _SIZE_LIMIT).decode("ascii")
    except UnicodeDecodeError:
        raise SourceError(f"'{path}' is not ASCII text") from None
