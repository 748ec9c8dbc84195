"""Where a dispatch runs: the protocol that the emulator and real hardware implement."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from asmevo.codeobject.container import CodeObject
from asmevo.dispatch.dispatch import Dispatch
from asmevo.errors import AsmEvoError
from asmevo.profile.machine import Machine
from asmevo.profile.profile import Profile

LINE_BYTES = 128  # of a memory line of gfx942 (AMD CDNA3 white paper)


class TimingSource(StrEnum):
    """Where a number comes from. Only a real GPU gives ``MEASURED``."""

    MEASURED = "measured"
    MODELLED = "modelled"


class UnsupportedError(AsmEvoError):
    """The device does not implement something the kernel uses; it is named, never approximated."""


class DeviceFault(AsmEvoError):  # noqa: N818 - a fault is what the hardware calls it
    """The kernel did something a GPU would fault on, or never ended.

    ``kind`` is one of ``memory``, ``illegal``, ``budget`` (of instructions) and ``timeout`` (of
    host time, a last resort), and in a process of its own also ``crash`` and ``out-of-memory``;
    ``pc`` is a byte offset from the entry.
    """

    def __init__(self, message: str, *, kind: str, pc: int = -1, text: str = "",
                 lane: int = -1, address: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.pc = pc
        self.text = text
        self.lane = lane
        self.address = address


class WorkgroupOrder(StrEnum):
    """In which order the emulator runs the workgroups of a launch."""

    ASCENDING = "ascending"
    DESCENDING = "descending"
    SHUFFLED = "shuffled"


class NanBits(IntEnum):
    """Sign and payload of the quiet NaN that arithmetic gives.

    In f32 7fc00000, ffc00000, 7fffffff and ffffffff. Hardware hands on an operand's, and the ISA
    does not say which operand's.
    """

    QUIET = 0
    NEGATIVE = 1
    FULL = 2
    NEGATIVE_FULL = 3


@dataclass(frozen=True, slots=True)
class LaunchState:
    """Everything a launch may not depend on.

    Undefined registers and LDS (``poison``), the order of workgroups and the bits of NaNs.
    ``resident`` workgroups run at the same time where they depend on one another; None stands for
    as many as the device holds. A kernel whose result changes with it relies on its workgroups
    being resident together.
    """

    poison: int = 0
    order: WorkgroupOrder = WorkgroupOrder.ASCENDING
    resident: int | None = None
    nan: NanBits = NanBits.QUIET


@dataclass(frozen=True, slots=True)
class RunResult:
    """Memory after a launch.

    ``regions[i]`` are the bytes of ``dispatch.regions[i].mapped`` afterwards (guards included);
    ``instructions`` the number of wave-instructions executed; ``seconds`` host time of the run.
    """

    regions: tuple[bytes, ...]
    instructions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Latencies of one dispatch in microseconds, and where they come from.

    A deterministic model gives one sample: repeating it would only pretend to a spread.
    """

    dispatch: str
    samples_us: tuple[float, ...]
    source: TimingSource
    device: str
    warmup: int = 0

    @property
    def median_us(self) -> float:
        return statistics.median(self.samples_us)

    @property
    def variation(self) -> float:
        """Coefficient of variation c_v = standard deviation / mean; 0 for one sample."""
        if len(self.samples_us) < 2:
            return 0.0
        return statistics.stdev(self.samples_us) / statistics.fmean(self.samples_us)


class LoadedKernel(Protocol):
    """One kernel of one code object, ready to launch."""

    def run(
        self, dispatch: Dispatch, state: LaunchState = LaunchState(), *,
        limit: int | None = None,
    ) -> RunResult:
        """Launch once. Raises `DeviceFault` or `UnsupportedError`.

        ``limit`` bounds the wave-instructions (on hardware: a proportional time) after which the
        launch counts as endless.
        """
        ...

    def time(
        self, dispatch: Dispatch, state: LaunchState = LaunchState(), *, samples: int, warmup: int
    ) -> Timing:
        """Time the launch ``samples`` times after ``warmup`` untimed ones."""
        ...

    def profile(
        self, dispatch: Dispatch, state: LaunchState = LaunchState(), *, timeline: bool = False
    ) -> Profile:
        """Attribute the launch's time to instructions; with ``timeline`` also clock by clock."""
        ...


@runtime_checkable
class WritingKernel(Protocol):
    """A kernel that need not give back what a launch cannot have written."""

    def written(
        self, dispatch: Dispatch, state: LaunchState = LaunchState(), *,
        limit: int | None = None,
    ) -> RunResult:
        """`LoadedKernel.run`, but that regions which the launch may not write are left empty."""
        ...


class Findings(Protocol):
    """What a checked launch reports beyond its results."""

    def summary(self) -> Sequence[str]:
        """One line for each class of finding."""
        ...

    @property
    def errors_by_class(self) -> Mapping[str, str]:
        """For each class of finding that names an error its first, in words.

        A class survives edits that do not matter to it: registers, widths and addresses are no
        part of it.
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """Every finding, JSON-compatible."""
        ...


@runtime_checkable
class DescribedDevice(Protocol):
    """A device whose rates and latencies are known."""

    @property
    def machine(self) -> Machine: ...


@runtime_checkable
class CheckedKernel(Protocol):
    """A loaded kernel that can also run checked, for what a launch that works may still hide."""

    def sanitize(
        self, dispatch: Dispatch, state: LaunchState = LaunchState(), *,
        limit: int | None = None,
    ) -> Findings: ...


@runtime_checkable
class TracedKernel(Protocol):
    """A loaded kernel that can also tell what a launch of it is made of."""

    def arguments(self, dispatch: Dispatch) -> bytes:
        """The kernarg segment as a launch passes it, hidden arguments included."""
        ...

    def touched(self, dispatch: Dispatch) -> npt.NDArray[np.uint64]:
        """Addresses of the memory lines that a launch touches, ascending, in `LINE_BYTES`."""
        ...


@runtime_checkable
class Device(Protocol):
    """A place where kernels run."""

    @property
    def name(self) -> str:
        """Model and settings, as recorded with every timing, e.g. ``emulator:gfx942:mi300x``."""
        ...

    @property
    def source(self) -> TimingSource: ...

    @property
    def deterministic(self) -> bool:
        """Whether timing the same launch twice gives the same number."""
        ...

    def load(self, code_object: CodeObject, kernel: str) -> LoadedKernel:
        """Load a kernel. Raises `UnsupportedError` naming the first thing that cannot run."""
        ...
