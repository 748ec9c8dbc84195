"""Times that AITER measured beside those of the cycle model."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.toolchain import Toolchain
from asmevo.device.device import Device, DeviceFault, LoadedKernel, UnsupportedError
from asmevo.task.session import make
from asmevo.validation.clearing import Clearing
from asmevo.validation.row import Confidence, ValidationRow
from asmevo.validation.tuned_dispatch import Launch, composed, launch_of
from asmevo.validation.tuned_kernels import UnknownKernelError, declarations
from asmevo.validation.tuned_rows import TunedRow, at_most, tuned_rows

# By compute units (AMD's product pages).
_MACHINES = {304: ("MI300X", "emulator"), 80: ("MI308X", "emulator_mi308x")}


@dataclass(frozen=True, slots=True)
class Timed:
    """What the model says of a row; ``seconds`` is the host time that took."""

    microseconds: float
    seconds: float


class TunedTimes:
    """Times rows of the table, each with at most ``seconds`` of host time for its execution.

    Code objects and devices are kept from one row to the next.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._device = functools.cache(self._made_device)
        self._loaded: dict[tuple[str, str, int], LoadedKernel] = {}

    def row(self, row: TunedRow) -> ValidationRow:
        """The row beside its model; without an answer, the note says why."""
        modelled, note = None, ""
        try:
            timed = self.timed(row)
            modelled, note = timed.microseconds, f"{timed.seconds:.1f} s of host time"
        except (SourceError, UnknownKernelError, UnsupportedError, DeviceFault) as error:
            note = str(error)
        return ValidationRow(
            group=f"{row.family} {machine(row)}", name=f"{row.kernel} {row.shape}", unit="us",
            expected=row.microseconds, modelled=modelled, source=row.source,
            confidence=Confidence.MEDIUM, note=note, kernel=row.kernel, shape=row.shape)

    def timed(self, row: TunedRow) -> Timed:
        """Raises what keeps the row from an answer."""
        started = time.perf_counter()
        microseconds = 0.0
        for launch in self._launches(row):
            timing = self._load(row, launch).time(launch.dispatch, samples=1, warmup=0)
            microseconds += timing.median_us
        return Timed(microseconds, time.perf_counter() - started)

    def _launches(self, row: TunedRow) -> Iterator[Launch]:
        for declared in declarations(row):
            if declared.cleared:
                yield self._clearing.launch(declared.cleared)
            yield launch_of(declared)

    @cached_property
    def _clearing(self) -> Clearing:
        return Clearing(make(composed([]), "toolchain", Toolchain))

    def _load(self, row: TunedRow, launch: Launch) -> LoadedKernel:
        key = (launch.code_object.sha256, launch.symbol, row.compute_units)
        if key not in self._loaded:
            device = self._device(row.compute_units)
            self._loaded[key] = device.load(launch.code_object, launch.symbol)
        return self._loaded[key]

    def _made_device(self, compute_units: int) -> Device:
        if compute_units not in _MACHINES:
            raise UnsupportedError(f"no configuration of a device has {compute_units} compute "
                                   "units")
        config = composed([f"device={_MACHINES[compute_units][1]}",
                           f"device.watchdog_seconds={self._seconds}",
                           "device.instruction_budget=1000000000000"])
        made: Device = make(config, "device", Device)
        return made


def machine(row: TunedRow) -> str:
    """The machine that has as many compute units."""
    return _MACHINES.get(row.compute_units, (f"{row.compute_units} CU", ""))[0]


def tuned_validation(count: int | None = None, seconds: float = 60.0,
                     rows: Iterable[TunedRow] | None = None) -> Iterator[ValidationRow]:
    """One row of the table after another, beside its model.

    ``count`` limits the rows of every family on every machine to as many, spread over their times.
    """
    selected = tuple(tuned_rows() if rows is None else rows)
    times = TunedTimes(seconds)
    for row in selected if count is None else at_most(selected, count):
        yield times.row(row)
