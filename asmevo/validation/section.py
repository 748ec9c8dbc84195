"""The parts of a validation, each of which gives rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.toolchain import Toolchain
from asmevo.device.device import LaunchState
from asmevo.device.emulator.emulator import Emulator
from asmevo.dispatch.declared import DeclaredOracle
from asmevo.isa.instruction import Unit
from asmevo.validation.bench import Bench
from asmevo.validation.loop import Loop, LoopError
from asmevo.validation.loop_body import loop_body
from asmevo.validation.mca import Mca
from asmevo.validation.microbenchmark import Microbenchmark, Quantity
from asmevo.validation.microbenchmarks import microbenchmarks
from asmevo.validation.row import Basis, Confidence, RowError, ValidationRow
from asmevo.validation.tuned import tuned_validation

# The contents of its buffers do not decide what a loop does, or when.
_ZEROS = DeclaredOracle(families=("zeros",))


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a validation works with."""

    emulator: Emulator
    toolchain: Toolchain


@runtime_checkable
class Section(Protocol):
    """One part of a validation."""

    def rows(self, equipment: Equipment) -> Iterator[ValidationRow]:
        """Its rows, one after the other as they are made. Raises an `AsmEvoError` when it cannot
        be run at all; what only one row lacks is a row without an answer."""
        ...


class Microbenchmarks:
    """Small kernels for single figures, on the machine that the emulator is of."""

    def rows(self, equipment: Equipment) -> Iterator[ValidationRow]:
        yield from Bench(equipment.emulator, equipment.toolchain, microbenchmarks()).rows()


@dataclass(frozen=True)
class Loops:
    """Main loops of production kernels, on the machine that they were measured on."""

    device: Emulator
    loops: Mapping[str, Loop]

    def rows(self, equipment: Equipment) -> Iterator[ValidationRow]:
        made: dict[str, ValidationRow] = {}
        for key, loop in self.loops.items():
            made[key] = loop.row(self.device, _ZEROS)
            yield made[key]
        for key, loop in self.loops.items():
            if loop.against is not None:
                if loop.against not in made:
                    raise LoopError(f"the loop '{key}' is against '{loop.against}', which is not "
                                    f"one of {', '.join(made)}")
                yield loop.ratio(made[key], made[loop.against])


@dataclass(frozen=True)
class Tuned:
    """Times of AITER's tuner and benchmarks, each on the machine that it was measured on.

    ``count`` rows of each family and machine, spread over their times; all of them if None.
    ``seconds`` is the host time that one may take to execute.
    """

    count: int | None
    seconds: float

    def rows(self, equipment: Equipment) -> Iterator[ValidationRow]:
        if self.count is not None and (isinstance(self.count, bool)
                                       or not isinstance(self.count, int) or self.count < 1):
            raise RowError("task.parts.tuned.count must be a whole number of at least 1, or null "
                           f"for all rows, not {self.count!r}")
        yield from tuned_validation(self.count, self.seconds)


@dataclass(frozen=True)
class LlvmMca:
    """What llvm-mca says of the bodies of microbenchmarks and loops that it can be asked about.

    Those are bodies of one wave that are alone on their unit, and no pointer chases. ``modelled``
    of a row is llvm-mca's.
    """

    path: str
    device: Emulator
    loops: Mapping[str, Loop]

    def rows(self, equipment: Equipment) -> Iterator[ValidationRow]:
        mca = Mca(self.path)
        group = f"llvm-mca {mca.version}"
        asked = {b.name: b for b in microbenchmarks() if _straight(b)}
        answers = mca.clk({name: b.body for name, b in asked.items()})
        for name, b in asked.items():
            yield ValidationRow(group, name, b.quantity.value, b.expected,
                                answers[name] / b.operations - b.overhead, b.source, b.confidence)
        for loop in self.loops.values():
            try:
                loaded, (short, _) = loop.launches(self.device, _ZEROS)
            except SourceError:
                continue
            profile = loaded.profile(short, LaunchState())
            body = loop_body(loaded.program, [row.issued for row in profile.instructions])
            operations = sum(instruction.unit is Unit.MFMA for instruction in body)
            clk = mca.clk({loop.name: [instruction.text for instruction in body]})[loop.name]
            yield ValidationRow(group, loop.name, "clk", loop.expected, clk / operations,
                                loop.source, Confidence(loop.confidence),
                                f"{len(body)} instructions, {operations} of them MFMA",
                                Basis.EMERGENT)


def _straight(benchmark: Microbenchmark) -> bool:
    return (benchmark.quantity is Quantity.CLK and not benchmark.other
            and benchmark.chase is None and len(benchmark.waves) == 1)
