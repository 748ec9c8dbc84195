"""Programs from text, and AITER kernels with made-up profiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.source import InstalledFile
from asmevo.isa.program import Program


def _read(path: str) -> Program:
    source = InstalledFile("amd-aiter", f"aiter_meta/hsa/gfx942/{path}")
    code_object = CodeObject.parse(source.read())
    return program(code_object, code_object.kernels[0].symbol)


@pytest.fixture(scope="session")
def layer_norm() -> Program:
    return _read("layer_norm.co")


@pytest.fixture(scope="session")
def i8gemm() -> Program:
    return _read("i8gemm/I8gemm_bf16_perTokenI8_BpreShuffle_128x128.co")


@pytest.fixture(scope="session")
def assemble() -> Callable[..., Program]:
    """Instructions of four bytes, those in ``wide`` of eight, labels by index; an end is added."""
    def make(texts: Sequence[str], labels: Sequence[int] = (),
             wide: Sequence[int] = ()) -> Program:
        rows, offset, names = [], 0, {}
        for index, text in enumerate([*texts, "s_endpgm"]):
            size = 8 if index in wide else 4
            if index in labels:
                names[offset] = f"L{index}"
            rows.append((offset, size, text))
            offset += size
        return Program.from_disassembly(rows, names)
    return make
