"""The main loop of a production kernel: clk per matrix operation of a SIMD."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import SourceError
from asmevo.device.device import LaunchState, UnsupportedError
from asmevo.device.emulator.emulator import EmulatedKernel, Emulator
from asmevo.dispatch.declared import DeclaredOracle
from asmevo.dispatch.dispatch import Dispatch
from asmevo.dispatch.kernel import Kernel
from asmevo.errors import AsmEvoError
from asmevo.isa.instruction import Unit
from asmevo.profile.profile import Profile
from asmevo.validation.row import Basis, Confidence, ValidationRow

GROUP = "loop"
_SIMDS = 4


class LoopError(AsmEvoError):
    """A loop's configuration says too little to measure it."""


@dataclass(frozen=True)
class Loop:
    """A published figure of a kernel's main loop, and how to launch the kernel to see it.

    ``kernel`` has two shapes, a short one and one with more rounds of the loop and all else the
    same, so that what is outside of the loop drops out of the difference. They give every compute
    unit that they give work the same amount. ``against`` names another loop whose ratio to this one
    is a figure of its own.
    """

    name: str
    kernel: Kernel
    expected: float
    source: str
    confidence: str
    note: str = ""
    goal: float | None = None
    against: str | None = None
    ratio_goal: float | None = None

    def row(self, emulator: Emulator, oracle: DeclaredOracle) -> ValidationRow:
        """The figure beside the model's. A kernel that is not there is a row without an answer."""
        modelled: float | None = None
        note = self.note
        try:
            modelled = self._measure(emulator, oracle)
        except (SourceError, UnsupportedError) as error:
            note = str(error)
        return ValidationRow(GROUP, self.name, "clk", self.expected, modelled, self.source,
                             Confidence(self.confidence), note, Basis.EMERGENT, goal=self.goal)

    def _measure(self, emulator: Emulator, oracle: DeclaredOracle) -> float:
        loaded, (short, long) = self.launches(emulator, oracle)
        first, second = (loaded.profile(d, LaunchState()) for d in (short, long))
        more = _matrix_operations(loaded, second) - _matrix_operations(loaded, first)
        if more <= 0:
            raise LoopError(f"the second shape of the loop '{self.name}' has no more matrix "
                            "operations than the first")
        return (second.cycles - first.cycles) / more

    def ratio(self, own: ValidationRow, other: ValidationRow) -> ValidationRow:
        """This loop's figure divided by another's."""
        known = own.modelled is not None and other.modelled is not None
        return ValidationRow(
            GROUP, f"{self.name} / {other.name}", "x", own.expected / other.expected,
            own.modelled / other.modelled if own.modelled and other.modelled else None,
            self.source, Confidence(self.confidence), "" if known else "one has no answer",
            Basis.EMERGENT, goal=self.ratio_goal)

    def launches(self, emulator: Emulator, oracle: DeclaredOracle
                 ) -> tuple[EmulatedKernel, tuple[Dispatch, Dispatch]]:
        """The kernel, its short launch and its long one.

        Raises `LoopError`, `SourceError` and `UnsupportedError`.
        """
        code_object = CodeObject.parse(self.kernel.source.read())
        found = code_object.kernel(self.kernel.symbol)
        dispatches = oracle.dispatches(self.kernel, found.symbol, found.metadata)
        dispatches = tuple(d for d in dispatches if not d.held_out)
        if len(dispatches) != 2:
            raise LoopError(f"the loop '{self.name}' needs two shapes and one input family, not "
                            f"{len(dispatches)} launches")
        return emulator.load(code_object, found.symbol), (dispatches[0], dispatches[1])


def _matrix_operations(loaded: EmulatedKernel, profile: Profile) -> float:
    """How many issued on each SIMD of the simulated compute units."""
    issued = sum(row.issued for row, instruction in zip(
        profile.instructions, loaded.program.instructions, strict=False)
        if instruction.unit is Unit.MFMA)
    return issued / (_SIMDS * len({wave.unit for wave in profile.waves}))
