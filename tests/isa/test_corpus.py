"""Production objects: every instruction is known, and its text survives parsing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from asmevo.isa.cfg import Cfg
from asmevo.isa.dataflow import liveness
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.registers import SCC_MASK
from asmevo.isa.resources import register_use


def _sample(corpus: list[str]) -> list[str]:
    """The first and the last object of every folder: all kernel families are there."""
    first = {PurePath(name).parent: name for name in reversed(corpus)}
    last = {PurePath(name).parent: name for name in corpus}
    return sorted({*first.values(), *last.values()})


def test_every_instruction_of_every_family_parses(
        kernel: Callable[[str], Program], corpus: list[str]) -> None:
    mnemonics: set[str] = set()
    sample = _sample(corpus)
    assert len(sample) >= 20
    for name in sample:
        program = kernel(name)
        assert program.offsets[0] == 0
        for instruction in program.instructions:
            assert parse(instruction.text) == instruction
            mnemonics.add(instruction.mnemonic)
    assert len(mnemonics) > 130


def test_registers_fit_the_descriptor(small_kernels: list[Program]) -> None:
    for program in small_kernels:
        vgprs, agprs, sgprs = register_use(program)
        assert 0 < vgprs <= 256
        assert agprs == 0
        assert 0 < sgprs <= 102


def test_only_launch_registers_are_live_into_small_kernels(small_kernels: list[Program]) -> None:
    for program in small_kernels:
        Cfg.of(program)
        after = liveness(program)
        assert after[-1] == 0
        first = program.instructions[0]
        live_in = after[0] & ~first.writes | first.reads
        assert not live_in & SCC_MASK
