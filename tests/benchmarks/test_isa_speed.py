"""Decoding of the corpus's median object (4,569 instructions).

Target: machine code with 20 new instructions to a program with a control flow graph in <= 10 ms.
Run with ``pytest --benchmark-only --benchmark-enable tests/benchmarks/test_isa_speed.py``.
"""

from __future__ import annotations

import importlib.metadata
import itertools
from pathlib import Path
from typing import Any

import pytest

from asmevo.codeobject import disassemble
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassembler import Row
from asmevo.isa import modifiers, operands, parse
from asmevo.isa.cfg import Cfg
from asmevo.isa.dataflow import liveness
from asmevo.isa.hazards import hazards
from asmevo.isa.program import Program
from asmevo.isa.waits import missing_waits

_OBJECT = "aiter_meta/hsa/gfx942/fmha_v3_bwd/bwd_hd64_bf16_a16_rtne.co"
_COUNT = 4569
_EDITED_LINES = 20


@pytest.fixture(scope="module")
def median() -> CodeObject:
    distribution = importlib.metadata.distribution("amd-aiter")
    return CodeObject.parse(Path(str(distribution.locate_file(_OBJECT))).read_bytes())


def _rows(median: CodeObject, code: bytes) -> tuple[Row, ...]:
    return disassemble.rows(code, median.target)


def _decode(median: CodeObject, code: bytes) -> Program:
    rows = _rows(median, code)
    labels = disassemble.labels(median, median.kernels[0], rows)
    return Program.from_disassembly(rows, labels, isa=median.target.isa)


def _forget() -> None:
    """As in a process that has parsed nothing yet."""
    parse.parse.cache_clear()
    operands.parse_source.cache_clear()
    modifiers.parse_modifiers.cache_clear()


def test_parse_cold(benchmark: Any, median: CodeObject) -> None:
    rows = _rows(median, median.code(median.kernels[0]))
    program = benchmark.pedantic(Program.from_disassembly, (rows, {}), setup=_forget, rounds=20)
    assert len(program) == _COUNT


def test_parse_warm(benchmark: Any, median: CodeObject) -> None:
    rows = _rows(median, median.code(median.kernels[0]))
    Program.from_disassembly(rows, {})
    assert len(benchmark(Program.from_disassembly, rows, {})) == _COUNT


def test_decode_after_an_edit(benchmark: Any, median: CodeObject) -> None:
    """Twenty instructions are new to every cache, as after assembling and linking an edit."""
    code = median.code(median.kernels[0])
    places = [offset for offset, size, text in _rows(median, code)
              if size == 4 and text.startswith("v_mov_b32_e32 v")][:_EDITED_LINES]
    assert len(places) == _EDITED_LINES
    numbers = itertools.count()

    def edited() -> tuple[tuple[CodeObject, bytes], dict[str, object]]:
        changed = bytearray(code)
        for place in places:
            # VOP1 v_mov_b32: destination in bits 17 to 24, source 256 + n is VGPR n.
            number = next(numbers)
            word = 0x7E000300 | number % 256 | number // 256 % 256 << 17
            changed[place:place + 4] = word.to_bytes(4, "little")
        return (median, bytes(changed)), {}

    def decode(median: CodeObject, code: bytes) -> Program:
        program = _decode(median, code)
        Cfg.of(program)
        return program

    _decode(median, code)
    assert len(benchmark.pedantic(decode, setup=edited, rounds=50, warmup_rounds=2)) == _COUNT


@pytest.mark.parametrize("analysis", [Cfg.of, liveness, missing_waits, hazards])
def test_analysis(benchmark: Any, median: CodeObject, analysis: Any) -> None:
    program = _decode(median, median.code(median.kernels[0]))
    benchmark.pedantic(analysis, (program,), rounds=5, warmup_rounds=1)
