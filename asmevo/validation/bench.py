"""Runs microbenchmarks on an emulator and puts what they give beside what was published."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain
from asmevo.device.device import LaunchState, UnsupportedError
from asmevo.device.emulator.emulator import EmulatedKernel, Emulator
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.errors import AsmEvoError
from asmevo.isa.instruction import Unit
from asmevo.profile.profile import Profile
from asmevo.validation.microbenchmark import LINE_BYTES, Microbenchmark, Quantity
from asmevo.validation.microkernel import WAVE, Microkernel, assembly
from asmevo.validation.row import Basis, ValidationRow

# By basis: agreement of the first kind would drown what the second has to say.
GROUPS = {Basis.PARAMETER: "microbenchmarks of parameters",
          Basis.EMERGENT: "emergent microbenchmarks"}
GOAL = 0.05

# A figure is a difference of differences: between loops of two lengths, so that what a loop adds
# drops out, and between two numbers of rounds, so that start, end and cold caches do.
_COPIES = (32, 64)
_ROUNDS = (4, 8)
# A stream's copies move much memory each.
_STREAM_COPIES = (1, 2)
_STREAM_ROUNDS = (4, 8)
_OUTSTANDING_COPIES = (128, 129)
_OUTSTANDING_ROUNDS = 2  # the second finds its code in the instruction cache
_FIRST_ADDRESS, _SECOND_ADDRESS = 0x7F10_0000_0000, 0x7F20_0000_0000
_BUFFER_BYTES = 1 << 17
_SEED = 942


class BenchError(AsmEvoError):
    """A microbenchmark measures nothing."""


class Bench:
    """All of ``benchmarks`` assembled into one object and loaded into ``emulator``."""

    def __init__(self, emulator: Emulator, toolchain: Toolchain,
                 benchmarks: Sequence[Microbenchmark]) -> None:
        self._emulator = emulator
        self._kernels: dict[tuple[int, bool, int], Microkernel] = {}
        for number, benchmark in enumerate(benchmarks):
            for reference in (False, True)[:2 if benchmark.reference else 1]:
                for copies in _copies(benchmark):
                    self._kernels[number, reference, copies] = Microkernel(
                        f"b{number}_{copies}{'_r' if reference else ''}", benchmark, copies,
                        reference)
        self._benchmarks = tuple(benchmarks)
        text = assembly(list(self._kernels.values()))
        self._object = CodeObject.parse(toolchain.link(toolchain.assemble(text, Target("gfx942"))))

    def rows(self) -> Iterator[ValidationRow]:
        """One row a microbenchmark of this machine."""
        units = self._emulator.timing.parameters.machine.compute_units
        for number, benchmark in enumerate(self._benchmarks):
            if benchmark.compute_units in (None, units):
                yield self.row(number)

    def row(self, number: int) -> ValidationRow:
        """The row of one microbenchmark. What the model refuses is a row without an answer."""
        b = self._benchmarks[number]
        modelled: float | None = None
        note = b.note
        try:
            modelled = self._measure(number)
        except UnsupportedError as error:
            note = str(error)
        return ValidationRow(
            GROUPS[b.basis], b.name, b.quantity.value, b.expected, modelled, b.source,
            b.confidence, note, b.basis, goal=GOAL if b.judged else None)

    def _measure(self, number: int) -> float:
        b = self._benchmarks[number]
        if b.quantity is Quantity.OUTSTANDING:
            return self._outstanding(number)
        clk = self._clk(number, False) / b.operations - b.overhead
        if b.quantity is Quantity.RATIO:
            return clk / (self._clk(number, True) / b.operations - b.overhead)
        if b.quantity is Quantity.BANDWIDTH:
            if b.stream is None:
                raise BenchError(f"'{b.name}' streams nothing")
            machine = self._emulator.timing.parameters.machine
            moved = b.stream.size * _work_items(machine.compute_units)
            return moved / clk * machine.clock_mhz * 1e6 / 1e12
        return clk

    def _clk(self, number: int, reference: bool) -> float:
        """clk of one copy."""
        short, long = _copies(self._benchmarks[number])
        few, many = _rounds(self._benchmarks[number], short)
        cycles = {}
        for copies in (short, long):
            kernel = self._kernels[number, reference, copies]
            loaded = self._emulator.load(self._object, kernel.symbol)
            for rounds in (few, many):
                cycles[copies, rounds] = self._launch(loaded, kernel, rounds).cycles
        grown = (cycles[long, many] - cycles[long, few]) - (cycles[short, many]
                                                            - cycles[short, few])
        if grown <= 0:
            raise BenchError(f"'{self._benchmarks[number].name}' takes no time")
        return grown / ((long - short) * (many - few))

    def _outstanding(self, number: int) -> float:
        b = self._benchmarks[number]
        kernel = self._kernels[number, False, _OUTSTANDING_COPIES[0]]
        loaded = self._emulator.load(self._object, kernel.symbol)
        profile = self._launch(loaded, kernel, _OUTSTANDING_ROUNDS)
        loads = [row for row, instruction in zip(profile.instructions,
                                                 loaded.program.instructions, strict=False)
                 if instruction.unit is Unit.VMEM or instruction.unit is Unit.FLAT]
        for count, row in enumerate(loads):
            if b.stall is not None and row.stalls.get(b.stall, 0) > 0:
                return count
        raise BenchError(f"no load of '{b.name}' ever stood")

    def _launch(self, loaded: EmulatedKernel, kernel: Microkernel, rounds: int) -> Profile:
        b = kernel.benchmark
        units = self._emulator.timing.parameters.machine.compute_units if b.stream else 1
        size = _BUFFER_BYTES
        data: bytes | None = None
        if b.stream is not None:
            span = b.stream.span * _work_items(units)
            size = span * (kernel.copies * rounds + 1)
        elif b.chase is not None:
            data = chain(b.chase.footprint)
        stride = 16 * _work_items(units)
        regions = (
            Region("first", _FIRST_ADDRESS, bytes(size) if data is None else data, Role.INOUT,
                   ElementType.U32),
            Region("second", _SECOND_ADDRESS, bytes(size if b.stream else _BUFFER_BYTES),
                   Role.INOUT, ElementType.U32))
        kernarg = struct.pack("<QQII", _FIRST_ADDRESS, _SECOND_ADDRESS, rounds, stride)
        dispatch = Dispatch(b.name, kernel.symbol, kernarg, (units, 1, 1),
                            (kernel.waves * WAVE, 1, 1), regions, (Pointer(0, 0), Pointer(8, 1)))
        return loaded.profile(dispatch, LaunchState())


def chain(footprint: int) -> bytes:
    """A buffer in which each line of 128 bytes begins with the offset of another, all in one cycle.

    The order is pseudo-random, so that no prefetcher could follow it.
    """
    lines = footprint // LINE_BYTES
    order = np.random.default_rng(_SEED).permutation(lines)
    words = np.zeros((lines, LINE_BYTES // 4), np.uint32)
    words[order, 0] = np.roll(order, -1) * LINE_BYTES
    # Entered at offset 0, wherever that is in the cycle.
    return words.tobytes()


def _copies(benchmark: Microbenchmark) -> tuple[int, int]:
    if benchmark.copies is not None:
        return benchmark.copies
    if benchmark.quantity is Quantity.OUTSTANDING:
        return _OUTSTANDING_COPIES
    return _STREAM_COPIES if benchmark.stream else _COPIES


def _rounds(benchmark: Microbenchmark, copies: int) -> tuple[int, int]:
    few, many = _STREAM_ROUNDS if benchmark.stream else _ROUNDS
    if benchmark.chase is None:
        return few, many
    lines = benchmark.chase.footprint // LINE_BYTES
    if benchmark.chase.warm:
        walk = -(-lines // copies)
        return walk, walk + many - few
    if _COPIES[1] * many > lines:
        raise BenchError(f"'{benchmark.name}' would touch lines twice")
    return few, many


def _work_items(units: int) -> int:
    return units * 4 * WAVE
