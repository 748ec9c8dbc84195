"""Every instruction of gfx942, by example."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

_FILE = "gfx942_instructions.tsv"


@dataclass(frozen=True, slots=True)
class Example:
    """One mnemonic: its microcode format and an instruction as LLVM prints it."""

    encoding: str
    text: str

    @property
    def mnemonic(self) -> str:
        return self.text.split()[0]


@cache
def examples() -> tuple[Example, ...]:
    """One example of each mnemonic LLVM knows for gfx942, in the order of formats and opcodes."""
    content = resources.files("asmevo.isa").joinpath(_FILE).read_text(encoding="utf-8")
    rows = (line.split("\t") for line in content.splitlines() if not line.startswith("#"))
    return tuple(Example(encoding, text) for encoding, text in rows)
