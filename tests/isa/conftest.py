"""AITER objects from the `amd-aiter` wheel, and a writer for small programs."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

from asmevo.codeobject import disassemble
from asmevo.codeobject.container import CodeObject
from asmevo.isa.program import Program

Kernels = Callable[[str], Program]
Assembler = Callable[..., Program]

SMALL_KERNELS = ("layer_norm.co", *(
    f"topksoftmax/topksoftmax_{rows}x{experts}x{top}.co"
    for rows in (4, 12) for experts in (128, 256) for top in (6, 8)))


@functools.cache
def _wheel(isa: str = "gfx942") -> Path:
    distribution = importlib.metadata.distribution("amd-aiter")
    return Path(str(distribution.locate_file(f"aiter_meta/hsa/{isa}")))


@functools.cache
def _load(name: str, isa: str = "gfx942") -> Program:
    return disassemble.program(CodeObject.parse((_wheel(isa) / name).read_bytes()))


@functools.cache
def _families(isa: str) -> list[CodeObject]:
    names = sorted(_wheel(isa).glob("**/*.co"))
    first = {path.parent: path for path in reversed(names)}
    last = {path.parent: path for path in names}
    return [CodeObject.parse(path.read_bytes())
            for path in sorted({*first.values(), *last.values()})]


@pytest.fixture(scope="session")
def kernel() -> Kernels:
    """The only kernel of an object below the wheel's ``hsa/gfx942``."""
    return _load


@pytest.fixture(scope="session")
def load() -> Callable[[str, str], Program]:
    """The only kernel of an object, by processor and name below the wheel's folder for it."""
    return lambda isa, name: _load(name, isa)


@pytest.fixture(scope="session")
def families() -> Callable[[str], list[CodeObject]]:
    """The first and the last object of every folder of the wheel, by processor."""
    return _families


@pytest.fixture(scope="session")
def write() -> Assembler:
    """A program from lines of text; ``name:`` on a line of its own is a label."""

    def assemble(text: str, isa: str = "gfx942") -> Program:
        rows: list[tuple[int, int, str]] = []
        labels: dict[int, str] = {}
        for line in filter(None, (part.strip() for part in text.splitlines())):
            if line.endswith(":"):
                labels[4 * len(rows)] = line[:-1]
            else:
                rows.append((4 * len(rows), 4, line))
        return Program.from_disassembly(rows, labels, isa=isa)

    return assemble


@pytest.fixture(scope="session")
def small_kernels() -> list[Program]:
    """Layer norm and every top-k softmax."""
    return [_load(name) for name in SMALL_KERNELS]
