"""The original object as the only oracle: its reference results, timings and static findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.entry import entry_registers
from asmevo.codeobject.interface import Interface, outside_hash
from asmevo.device.device import Device, LaunchState, LoadedKernel, Timing, WorkgroupOrder
from asmevo.dispatch.comparison import Tolerance, compare
from asmevo.dispatch.dispatch import Dispatch
from asmevo.errors import AsmEvoError
from asmevo.isa.dataflow import defined_before_use
from asmevo.isa.hazards import hazards
from asmevo.isa.program import Program
from asmevo.isa.violation import Violation
from asmevo.isa.waits import missing_waits


class OracleError(AsmEvoError):
    """The original cannot serve as an oracle: it disagrees with itself."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What one verification repeat varies, and a correct kernel may not depend on.

    ``displacement`` moves every buffer by that many bytes, ``output_seed`` fills pure outputs
    before the launch, ``state`` sets undefined registers, LDS and workgroup order.
    """

    state: LaunchState
    output_seed: int
    displacement: int

    def prepare(self, dispatch: Dispatch) -> Dispatch:
        return dispatch.moved(self.displacement).with_poisoned_outputs(self.output_seed)


_ORDERS = (WorkgroupOrder.ASCENDING, WorkgroupOrder.DESCENDING, WorkgroupOrder.SHUFFLED)
_PAGE = 4096
_LIMIT_FACTOR = 8
_LIMIT_SLACK = 100_000


def condition(repeat: int, seed: int) -> Condition:
    """The condition of verification repeat ``repeat`` (0, 1, 2...)."""
    return Condition(
        state=LaunchState(poison=seed * 1009 + repeat + 1, order=_ORDERS[repeat % len(_ORDERS)]),
        output_seed=seed * 2003 + repeat,
        displacement=repeat * 37 * _PAGE,
    )


def findings(code: Program, descriptor: KernelDescriptor) -> tuple[Violation, ...]:
    """Missing waits, hazards and reads of undefined registers, over all paths."""
    return (
        *missing_waits(code),
        *hazards(code),
        *defined_before_use(code, entry_registers(descriptor)),
    )


class Baseline:
    """Everything gates compare a candidate with, computed once for an original and its dispatches.

    Raises `OracleError` from `self_check` when two runs of the original under different conditions
    disagree, because then no comparison with it means anything.
    """

    def __init__(
        self, code_object: CodeObject, kernel: str, assembly: Assembly,
        dispatches: Sequence[Dispatch], device: Device, *, seed: int = 0,
    ) -> None:
        self.code_object = code_object
        self.kernel = kernel
        self.assembly = assembly
        self.dispatches = tuple(dispatches)
        self.device = device
        self.seed = seed
        self._references: dict[tuple[int, int], tuple[bytes, ...]] = {}
        self._instructions: dict[int, int] = {}
        self._timings: dict[tuple[int, int, int], Timing] = {}

    @cached_property
    def loaded(self) -> LoadedKernel:
        return self.device.load(self.code_object, self.kernel)

    @cached_property
    def program(self) -> Program:
        return program(self.code_object, self.kernel)

    @cached_property
    def interface(self) -> Interface:
        return Interface.of(self.code_object, self.code_object.kernel(self.kernel))

    @cached_property
    def outside_hash(self) -> str:
        return outside_hash(self.code_object, self.code_object.kernel(self.kernel))

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """What the original itself is found to do; a candidate may keep it."""
        descriptor = self.code_object.kernel(self.kernel).descriptor
        return findings(self.program, descriptor)

    @property
    def timed_dispatches(self) -> tuple[int, ...]:
        """Indices of the timed dispatches: of each visible shape the first input family."""
        seen: dict[tuple[object, ...], int] = {}
        for index, dispatch in enumerate(self.dispatches):
            if not dispatch.held_out:
                sizes = tuple(len(region.data) for region in dispatch.regions)
                seen.setdefault((dispatch.grid, sizes), index)
        return tuple(seen.values())

    def reference(self, index: int, repeat: int) -> tuple[bytes, ...]:
        """The original's post-state of dispatch ``index`` under the condition of ``repeat``."""
        key = (index, repeat)
        if key not in self._references:
            at = condition(repeat, self.seed)
            result = self.loaded.run(at.prepare(self.dispatches[index]), at.state)
            self._references[key] = result.regions
            self._instructions[index] = result.instructions
        return self._references[key]

    def instruction_limit(self, index: int) -> int:
        """Wave-instructions after which a candidate counts as endless on a dispatch.

        A candidate that needs several times the original's instructions is no replacement; the
        slack is for kernels so small that a few instructions are a multiple.
        """
        if index not in self._instructions:
            self.reference(index, 0)
        return _LIMIT_FACTOR * self._instructions[index] + _LIMIT_SLACK

    def timing(self, index: int, *, samples: int, warmup: int) -> Timing:
        """The original's timing of a dispatch; measured again each time unless deterministic."""
        if not self.device.deterministic:
            return self.loaded.time(self.dispatches[index], samples=samples, warmup=warmup)
        key = (index, samples, warmup)
        if key not in self._timings:
            self._timings[key] = self.loaded.time(
                self.dispatches[index], samples=samples, warmup=warmup
            )
        return self._timings[key]

    def self_check(self, tolerance: Tolerance) -> int:
        """Run the original twice on every dispatch and compare; gives the wave-instructions run.

        The two runs differ in undefined state, buffer placement, workgroup order and output
        contents. Raises `OracleError` naming the dispatch and region that disagree.
        """
        instructions = 0
        first, second = condition(0, self.seed), condition(1, self.seed)
        # Both runs start from the same output contents: bytes the kernel never writes keep them,
        # and would differ between fillings although nothing is wrong.
        second = replace(second, output_seed=first.output_seed)
        for index, dispatch in enumerate(self.dispatches):
            prepared = first.prepare(dispatch)
            result = self.loaded.run(prepared, first.state)
            self._references[index, 0] = result.regions
            self._instructions[index] = result.instructions
            repeated = self.loaded.run(second.prepare(dispatch), second.state)
            instructions += result.instructions + repeated.instructions
            for outcome in compare(
                prepared, result.regions, repeated.regions, tolerance
            ):
                if not outcome.equal:
                    raise OracleError(
                        f"the original disagrees with itself on dispatch '{dispatch.name}', region "
                        f"'{outcome.region}' ({outcome.code}): its result depends on undefined "
                        "state, buffer placement or workgroup order"
                    )
        return instructions
