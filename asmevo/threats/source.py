"""Kernels of the threat model's own, in assembly."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain

_GFX942 = Target("gfx942")


@dataclass(frozen=True)
class Assembled:
    """A text of this folder, assembled for gfx942 when it is read."""

    name: str
    toolchain: Toolchain

    def read(self) -> bytes:
        text = files("asmevo.threats").joinpath(f"{self.name}.s")
        if not self.name.isidentifier() or not text.is_file():
            raise SourceError(f"the threat model has no kernel '{self.name}'")
        relocatable = self.toolchain.assemble(text.read_text(encoding="utf-8"), _GFX942)
        return self.toolchain.link(relocatable)

    def describe(self) -> str:
        return f"{self.name}.s"
