"""The original object as the only oracle: its reference results, timings and static findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.entry import entry_registers
from asmevo.codeobject.interface import Interface, outside_hash
from asmevo.device.device import Device, LaunchState, LoadedKernel, Timing, WorkgroupOrder
from asmevo.dispatch.comparison import Tolerance, compare
from asmevo.dispatch.dispatch import Dispatch, Role
from asmevo.dispatch.generator import to_floats
from asmevo.gates.errors import OracleError as OracleError
from asmevo.gates.replay import check_replay
from asmevo.isa.dataflow import defined_before_use
from asmevo.isa.hazards import hazards
from asmevo.isa.program import Program
from asmevo.isa.violation import Violation
from asmevo.isa.waits import missing_waits
from asmevo.profile.profile import Profile


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
_MOST_PAGES_DOWN = 0x5_0000_0000
_LIMIT_FACTOR = 8
_LIMIT_SLACK = 100_000
_MOST_UNWRITTEN = 0.5


def condition(repeat: int, seed: int) -> Condition:
    """The condition of verification repeat ``repeat`` (0, 1, 2...)."""
    rng = np.random.default_rng([seed, repeat])
    poison, output_seed = (int(word) for word in rng.integers(1, 1 << 32, size=2))
    # Downwards over most of the user address space: high address bits change as well.
    pages = int(rng.integers(1, _MOST_PAGES_DOWN))
    return Condition(
        state=LaunchState(poison, _ORDERS[repeat % len(_ORDERS)]),
        output_seed=output_seed,
        displacement=-pages * _PAGE,
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
        # Largest |difference| by dispatch that workgroup order alone makes in the original.
        self.noise: dict[int, float] = {}
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
        key = (index, samples, warmup)
        if key not in self._timings or not self.device.deterministic:
            self._timings[key] = self.time(self.loaded, index, samples=samples, warmup=warmup)
        return self._timings[key]

    def time(self, loaded: LoadedKernel, index: int, *, samples: int, warmup: int) -> Timing:
        """Time a kernel on a dispatch exactly as G2's first repeat verified it.

        Were anything different (output contents, placement, undefined state), a candidate could
        tell the timed run from the verified ones and skip its work there.
        """
        at = condition(0, self.seed)
        return loaded.time(
            at.prepare(self.dispatches[index]), at.state, samples=samples, warmup=warmup
        )

    def profile(self, loaded: LoadedKernel, index: int) -> Profile:
        """Profile a kernel under the condition in which it is timed."""
        at = condition(0, self.seed)
        return loaded.profile(at.prepare(self.dispatches[index]), at.state)

    def self_check(self, tolerance: Tolerance) -> int:
        """Run the original twice on every dispatch and compare; gives the wave-instructions run.

        The two runs differ in undefined state, buffer placement, workgroup order and output
        contents. Raises `OracleError` naming the dispatch and region that disagree, and where a
        dispatch asks for nothing: an output that is left unwritten, or is never anything but one
        value or NaN, cannot tell a right kernel from a wrong one.

        A dispatch with order-dependent regions is run a third time, with the first run's order:
        then everything must agree. How far such regions differ under another order is rounding of
        the original's own, the envelope of `noise`; only NaN, infinities and cosine decide there.
        Gates compare a candidate with the original under one and the same order.
        """
        instructions = 0
        telling: set[str] = set()
        first, second = condition(0, self.seed), condition(1, self.seed)
        # Both runs start from the same output contents: bytes the kernel never writes keep them,
        # and would differ between fillings although nothing is wrong.
        second = replace(second, output_seed=first.output_seed)
        for index, dispatch in enumerate(self.dispatches):
            instructions += check_replay(self.loaded, dispatch, tolerance)
            prepared = first.prepare(dispatch)
            result = self.loaded.run(prepared, first.state)
            self._references[index, 0] = result.regions
            self._instructions[index] = result.instructions
            repeated = self.loaded.run(second.prepare(dispatch), second.state)
            instructions += result.instructions + repeated.instructions
            _check_written(prepared, result.regions)
            outcomes = compare(prepared, result.regions, repeated.regions, tolerance)
            varying = {r.name for r in dispatch.regions if r.order_dependent}
            if varying:
                same_order = replace(second.state, order=first.state.order)
                again = self.loaded.run(second.prepare(dispatch), same_order)
                instructions += again.instructions
                self.noise[index] = max(o.max_abs for o in outcomes if o.region in varying)
                outcomes = (
                    *compare(prepared, result.regions, again.regions, tolerance),
                    *(o for o in outcomes if o.region not in varying
                      or o.code not in ("ok", "max-abs") or o.cosine < tolerance.cosine),
                )
            for outcome in outcomes:
                if not outcome.equal:
                    raise OracleError(
                        f"the original disagrees with itself on dispatch '{dispatch.name}', region "
                        f"'{outcome.region}' ({outcome.code}): its result depends on undefined "
                        "state, buffer placement or workgroup order"
                    )
            telling |= _telling_outputs(prepared, result.regions)
        for region in self.dispatches[0].regions if self.dispatches else ():
            # What a captured dispatch writes is what an application made of it, constants included.
            captured = self.dispatches[0].recorded is not None
            if region.role is Role.OUTPUT and region.name not in telling and not captured:
                raise OracleError(
                    f"output '{region.name}' is never anything but one value or not finite: its "
                    "dispatches could not tell a right kernel from a wrong one"
                )
        return instructions


def _check_written(prepared: Dispatch, after: tuple[bytes, ...]) -> None:
    """Raise `OracleError` when the original leaves most of an output as it was filled."""
    for region, mapped in zip(prepared.regions, after, strict=True):
        if region.role is not Role.OUTPUT:
            continue
        filled = np.frombuffer(region.data, np.uint8)
        left = np.frombuffer(mapped, np.uint8)[region.guard:region.guard + len(region.data)]
        if (filled == left).mean() > _MOST_UNWRITTEN:
            raise OracleError(
                f"the original leaves most of output '{region.name}' unwritten on dispatch "
                f"'{prepared.name}': declare a smaller buffer or other scalars"
            )


def _telling_outputs(prepared: Dispatch, after: tuple[bytes, ...]) -> set[str]:
    """Names of outputs of which at least half is finite, and not all of it one value."""
    telling = set()
    for region, mapped in zip(prepared.regions, after, strict=True):
        data = mapped[region.guard:region.guard + len(region.data)]
        if region.element.is_float:
            values = to_floats(data, region.element)
            values = values[np.isfinite(values)]
            enough = 2 * values.size * region.element.size >= len(data)
        else:
            values, enough = np.frombuffer(data, np.uint8).astype(np.float64), True
        if enough and values.size and values.min() < values.max():
            telling.add(region.name)
    return telling
