"""The wait and hazard checkers against what LLVM inserts into compiled kernels."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from asmevo.codeobject import disassemble
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.target import Feature, Target
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.isa.cfg import Cfg
from asmevo.isa.hazards import hazards, smallest_nop
from asmevo.isa.instruction import WaitCount
from asmevo.isa.program import Program
from asmevo.isa.targets import TARGETS
from asmevo.isa.waits import loosest_wait, missing_waits

_SOURCE = Path(__file__).with_name("compiled_kernels.hip")
# LLVM puts two wait states between a VCC write and a carry-in, the ISA document none.
_CARRY_IN = ("v_addc_co_u32",)
# Waits LLVM places before a workgroup barrier whatever is in flight.
_BARRIER_WAIT = WaitCount(0, None, 0)


@pytest.fixture(scope="module", params=TARGETS)
def compiled(
        request: pytest.FixtureRequest,
        tmp_path_factory: pytest.TempPathFactory) -> dict[str, Program]:
    # XNACK off: replay support needs nops of its own kind.
    target = Target(request.param, xnack=Feature.OFF)
    assembly = tmp_path_factory.mktemp("compiled") / "kernels.s"
    subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-x", "hip",
         f"--offload-arch={target.processor}", "--offload-device-only", "-nogpuinc",
         "-nogpulib", "-O3", "-S", str(_SOURCE), "-o", str(assembly)], check=True, timeout=120)
    toolchain = ZigToolchain()
    linked = toolchain.link(toolchain.assemble(assembly.read_text(), target))
    code_object = CodeObject.parse(linked)
    return {k.symbol: disassemble.program(code_object, k.symbol) for k in code_object.kernels}


def test_nothing_is_reported_on_compiled_code(compiled: dict[str, Program]) -> None:
    assert len(compiled) > 90
    for name, program in compiled.items():
        assert missing_waits(program) == (), name
        assert hazards(program) == (), name


def test_every_nop_is_as_long_as_needed(compiled: dict[str, Program]) -> None:
    checked = 0
    for name, program in compiled.items():
        cfg = Cfg.of(program)
        for index, instruction in enumerate(program.instructions[:-1]):
            if program.instructions[index + 1].op in _CARRY_IN:
                continue
            if instruction.op == "s_nop" and cfg.reachable(index):
                assert smallest_nop(program, index) == instruction.operands[0].value, (name, index)
                checked += 1
    assert checked > 150


def test_every_wait_is_as_tight_as_needed(compiled: dict[str, Program]) -> None:
    checked = 0
    for name, program in compiled.items():
        for index, instruction in enumerate(program.instructions):
            if instruction.wait is None:
                continue
            found, written = loosest_wait(program, index), instruction.wait
            if program.instructions[index + 1].op == "s_barrier" and written == _BARRIER_WAIT:
                written = replace(written, lgkmcnt=found.lgkmcnt)
            assert found == written, (name, index)
            checked += 1
    assert checked > 150
