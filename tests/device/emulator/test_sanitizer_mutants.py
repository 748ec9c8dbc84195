"""Production kernels without one of their waits, barriers or initialisations.

Every mutant whose result depends on what the launch leaves undefined has to be reported, and every
report of a missing wait has to be one that the static check of `asmevo.isa.waits` knows.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from asmevo.device.device import DeviceFault, LaunchState
from asmevo.device.emulator.emulator import EmulatedKernel
from asmevo.device.emulator.sanitizer import Kind, Report
from asmevo.isa.instruction import Unit
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.registers import VCC_LO, VGPR0, members
from asmevo.isa.waits import missing_waits
from tests.device.emulator.test_kernels import (
    code_object,
    emulator,
    layer_norm_dispatch,
    load,
    topk_dispatch,
)

if TYPE_CHECKING:
    from asmevo.dispatch.dispatch import Dispatch

NAMES = ("layer_norm", "topksoftmax/topksoftmax_4x128x8")


@functools.cache
def scene(name: str) -> tuple[EmulatedKernel, Dispatch]:
    kernel, symbol = load(name)
    rng = np.random.default_rng(1)
    if name == "layer_norm":
        x, residual = (rng.normal(0.5, 1, (2, 8192)).astype(ml_dtypes.bfloat16) for _ in range(2))
        weight, bias = (rng.normal(1, 0.5, 8192).astype(ml_dtypes.bfloat16) for _ in range(2))
        return kernel, layer_norm_dispatch(symbol, x, residual, weight, bias, 1e-5)
    gating = rng.normal(0, 2, (5, 128)).astype(np.float32)
    return kernel, topk_dispatch(symbol, 4, gating, 8, True)


def without(name: str, index: int, text: str = "s_nop 0") -> EmulatedKernel:
    """The kernel with one instruction replaced."""
    kernel, dispatch = scene(name)
    instructions = list(kernel.program.instructions)
    instructions[index] = parse(text)
    program: Program = replace(kernel.program, instructions=tuple(instructions))
    return EmulatedKernel(emulator(), code_object(name).kernel(dispatch.kernel), program)


def new_reports(name: str, mutant: EmulatedKernel) -> list[Report]:
    kernel, dispatch = scene(name)
    known = {(r.kind, r.pc, r.producer_pc) for r in kernel.sanitize(dispatch).reports}
    return [r for r in mutant.sanitize(dispatch).reports
            if (r.kind, r.pc, r.producer_pc) not in known]


def of_unit(name: str, unit: Unit) -> Iterator[int]:
    kernel, dispatch = scene(name)
    ran = kernel.trace(dispatch, np.arange(dispatch.grid[0], dtype=np.uint32)).issue_counts(
        len(kernel.program))
    return (index for index, i in enumerate(kernel.program.instructions)
            if i.unit is unit and ran[index])


@pytest.mark.parametrize("name", NAMES)
def test_every_missing_wait_is_reported(name: str) -> None:
    kernel, _ = scene(name)
    reported = 0
    for index in of_unit(name, Unit.WAIT):
        mutant = without(name, index)
        found = [r for r in new_reports(name, mutant) if r.kind is Kind.USE_BEFORE_WAIT]
        offsets = mutant.program.offsets
        static, own = ({(offsets[v.producer], offsets[v.consumer]) for v in missing_waits(p)
                        if not v.kind.endswith("-barrier")}
                       for p in (mutant.program, kernel.program))
        in_registers = {(r.producer_pc, r.pc) for r in found if r.register}
        assert in_registers <= static
        if static - own:
            assert found, f"{kernel.program.offsets[index]:#x}"
            # The first use is one of those that the static check finds on this path.
            assert min(r.pc for r in found) >= offsets[index]
        reported += bool(found)
    assert reported >= 2


@pytest.mark.parametrize("name", NAMES)
def test_every_missing_barrier_is_reported(name: str) -> None:
    for index in of_unit(name, Unit.BARRIER):
        found = new_reports(name, without(name, index))
        kinds = {r.kind for r in found}
        assert Kind.LDS_RACE in kinds
        assert kinds <= {Kind.LDS_RACE, Kind.UNINITIALISED_LDS}
        races = [r for r in found if r.kind is Kind.LDS_RACE]
        assert all(r.text.startswith("ds_") and r.producer_text.startswith("ds_") for r in races)


@pytest.mark.parametrize(("name", "least"), [(NAMES[0], 40), (NAMES[1], 1)])
def test_every_missing_definition_that_matters_is_reported(name: str, least: int) -> None:
    """Each instruction that alone writes a register, replaced by nothing: where the result then
    depends on the undefined state, something undefined was used."""
    kernel, dispatch = scene(name)
    instructions = kernel.program.instructions
    writers = Counter(
        r for i in instructions for r in members(i.writes) if r < VCC_LO or r >= VGPR0)
    mattered = 0
    for index in (k for unit in (Unit.VALU, Unit.SALU, Unit.TRANS) for k in of_unit(name, unit)):
        if all(writers[r] != 1 for r in members(instructions[index].writes)):
            continue
        mutant = without(name, index)
        results = []
        for poison in (1, 2):
            try:
                results.append(mutant.run(dispatch, LaunchState(poison)).regions)
            except DeviceFault as fault:
                results.append((str(fault).encode(),))
        if results[0] == results[1]:
            continue
        mattered += 1
        found = [r for r in new_reports(name, mutant) if r.kind is Kind.UNINITIALISED_REGISTER]
        assert found, instructions[index].text
        assert all(r.producer_pc is None for r in found)
        assert min(r.pc for r in found) > kernel.program.offsets[index]
    assert mattered >= least
