"""The original object as the only oracle: its reference results, timings and static findings."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.entry import entry_registers, entry_sources
from asmevo.codeobject.interface import Interface, outside_hash
from asmevo.device.device import (
    CheckedKernel,
    Device,
    DeviceFault,
    LoadedKernel,
    RunResult,
    Timing,
    UnsupportedError,
)
from asmevo.dispatch.comparison import Noise, Tolerance, compare, noise_of
from asmevo.dispatch.dispatch import Dispatch, Role
from asmevo.dispatch.generator import to_floats
from asmevo.errors import AsmEvoError
from asmevo.gates.argument_uses import ArgumentUses
from asmevo.gates.condition import Condition, condition, envelope_states
from asmevo.gates.errors import OracleError as OracleError
from asmevo.gates.floor import Floor, floor_of
from asmevo.gates.launch_uses import LaunchUses
from asmevo.gates.operand_uses import OperandUses
from asmevo.gates.precision import Floats
from asmevo.gates.replay import check_replay
from asmevo.gates.skeleton import Skeleton, Skeletons
from asmevo.isa.dataflow import defined_before_use
from asmevo.isa.hazards import hazards
from asmevo.isa.kept_values import KeptValues
from asmevo.isa.program import Program
from asmevo.isa.value_numbers import Numbers
from asmevo.isa.values import Source, Values
from asmevo.isa.violation import Violation
from asmevo.isa.waits import missing_waits
from asmevo.operation.declared import expected
from asmevo.operation.operation import Operation
from asmevo.profile.profile import Profile

log = logging.getLogger(__name__)

_LIMIT_FACTOR = 8
_LIMIT_SLACK = 100_000
_MOST_UNWRITTEN = 0.5


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
        operation: Operation | None = None, candidate_device: Device | None = None,
    ) -> None:
        self.code_object = code_object
        self.kernel = kernel
        self.assembly = assembly
        self.dispatches = tuple(dispatches)
        self.device = device
        # Where candidates run; the original is trusted to run here.
        self.candidate_device = candidate_device or device
        self.seed = seed
        self.numbers = Numbers()
        self._operation = operation
        # By dispatch the regions in which the original faults where a line of 4 GiB is in them.
        self.whole: dict[int, frozenset[str]] = {}
        self._noise: dict[int, Mapping[str, Noise]] = {}
        self._floors: dict[int, Floor | None] = {}
        self._truths: dict[int, Mapping[str, Floats]] = {}
        self._prepared: dict[tuple[int, int], Dispatch] = {}
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

    @cached_property
    def launch_uses(self) -> LaunchUses:
        """Where arguments, ids and data decide what the original does."""
        return LaunchUses.of(self._values, self.pointer_words)

    @cached_property
    def operand_uses(self) -> OperandUses:
        """Which of them reach its vector and memory instructions."""
        return OperandUses.of(self._values, self.pointer_words, original=True)

    @cached_property
    def argument_uses(self) -> ArgumentUses:
        """Which arguments it makes use of, and which of its addresses do not carry."""
        return ArgumentUses.of(self._values)

    @cached_property
    def skeletons(self) -> Skeletons:
        """Makes what of a program those two depend on."""
        _ = self.launch_uses, self.operand_uses
        return Skeletons(self._values.followed, self._values.carriers)

    @cached_property
    def skeleton(self) -> Skeleton:
        """The original's."""
        return self.skeletons.of(self.program)

    @cached_property
    def _values(self) -> Values:
        return Values(self.program, self._entry(self.code_object.kernel(self.kernel).descriptor),
                      self.numbers)

    def values_of(self, code: Program, descriptor: KernelDescriptor) -> Values:
        """The values of a candidate, with numbers that the original's can be compared with."""
        return KeptValues(code, self._entry(descriptor), self.numbers, self._values)

    def _entry(self, descriptor: KernelDescriptor) -> Mapping[int, Source]:
        self.numbers.pointers.update(self.numbers.kernarg(word) for word in self.pointer_words)
        return entry_sources(descriptor)

    @cached_property
    def pointer_words(self) -> frozenset[int]:
        return frozenset(offset + word for dispatch in self.dispatches
                         for offset in (p.offset for p in dispatch.pointers if p.holder is None)
                         for word in (0, 4))

    @property
    def timed_dispatches(self) -> tuple[int, ...]:
        """Indices of the timed dispatches: of each visible shape the first input family."""
        seen: dict[tuple[object, ...], int] = {}
        for index, dispatch in enumerate(self.dispatches):
            if not dispatch.held_out:
                sizes = tuple(len(region.data) for region in dispatch.regions)
                seen.setdefault((dispatch.grid, sizes), index)
        return tuple(seen.values())

    def prepared(self, index: int, repeat: int) -> Dispatch:
        """A dispatch under the condition of ``repeat``, made once: devices keep what they map."""
        key = (index, repeat)
        if key not in self._prepared:
            at = condition(repeat, self.seed)
            if at.line is None:
                self._prepared[key] = at.prepare(self.dispatches[index])
            else:
                self.reference(index, repeat)
        return self._prepared[key]

    def reference(self, index: int, repeat: int) -> tuple[bytes, ...]:
        """The original's post-state of dispatch ``index`` under the condition of ``repeat``."""
        key = (index, repeat)
        if key not in self._references:
            at = condition(repeat, self.seed)
            self._prepared[key], result = self._run(index, at)
            self._references[key] = result.regions
            self._instructions[index] = result.instructions
        return self._references[key]

    def _run(self, index: int, at: Condition) -> tuple[Dispatch, RunResult]:
        """The original on a dispatch under a condition, with lines only where it bears them.

        Raises `DeviceFault` where it does not run under the condition otherwise.
        """
        dispatch, known = self.dispatches[index], self.whole.get(index, frozenset())
        prepared = at.prepare(dispatch, known)
        try:
            return prepared, self.loaded.run(prepared, at.state)
        except DeviceFault:
            if at.line is None:
                raise
            names = {region.name for region in dispatch.regions}
            whole = {name for name in names - known
                     if self._faults(at.prepare(dispatch, names - {name}), at)}
            if not whole:
                raise
            log.warning("dispatch '%s': the original does not bear a line of 4 GiB in %s; sums of "
                        "addresses there are not tested for carries", dispatch.name,
                        ", ".join(sorted(whole)))
            self.whole[index] = known | whole
            prepared = at.prepare(dispatch, self.whole[index])
            return prepared, self.loaded.run(prepared, at.state)

    def _faults(self, prepared: Dispatch, at: Condition) -> bool:
        try:
            self.loaded.run(prepared, at.state)
        except DeviceFault:
            return True
        return False

    def noise(self, index: int) -> Mapping[str, Noise]:
        """How far runs of the original differ by workgroup order alone, by region.

        Only regions that workgroups add to with atomics may; the runs are made when first asked
        for. Raises `DeviceFault`.
        """
        if index not in self._noise:
            dispatch = self.dispatches[index]
            runs = []
            if any(region.order_dependent for region in dispatch.regions):
                prepared = self.prepared(index, 0)
                runs = [self.loaded.run(prepared, state).regions
                        for state in envelope_states(self.seed)]
            self._noise[index] = noise_of(dispatch, runs)
        return self._noise[index]

    def truth(self, index: int) -> Mapping[str, Floats]:
        """What the kernel's operation says of the written regions, in float64 and by name.

        Empty where there is no operation, or none for these inputs.
        """
        if index not in self._truths:
            self._truths[index] = self._exact(self.dispatches[index])
        return self._truths[index]

    def _exact(self, dispatch: Dispatch) -> Mapping[str, Floats]:
        if self._operation is None:
            return {}
        arrays = {r.name: np.frombuffer(r.data, r.element.dtype) for r in dispatch.regions}
        try:
            with np.errstate(all="ignore"):
                found = expected(self._operation, arrays, dispatch.names)
        except AsmEvoError as error:
            log.info("dispatch '%s' has no reference: %s", dispatch.name, error)
            return {}
        return {name: array.astype(np.float64).ravel() for name, array in found.items()}

    @property
    def smallest_dispatch(self) -> int | None:
        """The visible dispatch for which the original needs the fewest instructions."""
        visible = [i for i, dispatch in enumerate(self.dispatches) if not dispatch.held_out]
        return min(visible, key=self.instruction_limit, default=None)

    @cached_property
    def sanitized(self) -> frozenset[str]:
        """The sanitizer's classes of error that the original has on its smallest dispatch."""
        index, loaded = self.smallest_dispatch, self.loaded
        if index is None or not isinstance(loaded, CheckedKernel):
            return frozenset()
        at = condition(0, self.seed)
        found = loaded.sanitize(self.prepared(index, 0), at.state)
        return frozenset(found.errors_by_class)

    def instructions(self, index: int) -> int:
        """Wave-instructions that the original executes on a dispatch."""
        if index not in self._instructions:
            self.reference(index, 0)
        return self._instructions[index]

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
        return loaded.time(self.prepared(index, 0), at.state, samples=samples, warmup=warmup)

    def floor(self, index: int) -> Floor | None:
        """The least time a launch of a dispatch can take; ``None`` where the device cannot tell."""
        if index not in self._floors:
            try:
                profile = self.profile(self.loaded, index)
            except UnsupportedError as error:
                log.info("no floor for '%s': %s", self.dispatches[index].name, error)
                self._floors[index] = None
            else:
                self._floors[index] = floor_of(
                    self.prepared(index, 0), self.reference(index, 0), profile, self.program,
                    self.device)
        return self._floors[index]

    def profile(self, loaded: LoadedKernel, index: int) -> Profile:
        """Profile a kernel under the condition in which it is timed."""
        at = condition(0, self.seed)
        return loaded.profile(self.prepared(index, 0), at.state)

    def self_check(self, tolerance: Tolerance) -> int:
        """Run the original twice on every dispatch and compare; gives the wave-instructions run.

        The two runs differ in undefined state, buffer placement, workgroup order and output
        contents. Raises `OracleError` naming the dispatch and region that disagree, and where a
        dispatch asks for nothing: an output that is left unwritten, or is never anything but one
        value or NaN, cannot tell a right kernel from a wrong one.

        A dispatch with order-dependent regions is run again, with the first run's order: then
        everything must agree. How far such regions differ under other orders is rounding of the
        original's own, its `noise`; only NaN, infinities and cosine decide there.
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
            prepared = self.prepared(index, 0)
            result = self.loaded.run(prepared, first.state)
            self._references[index, 0] = result.regions
            self._instructions[index] = result.instructions
            elsewhere, repeated = self._run(index, second)
            instructions += result.instructions + repeated.instructions
            _check_written(prepared, result.regions)
            outcomes = compare(prepared, result.regions,
                               prepared.brought_back(repeated.regions, elsewhere), tolerance)
            varying = {r.name for r in dispatch.regions if r.order_dependent}
            if varying:
                same_order = replace(second.state, order=first.state.order)
                again = self.loaded.run(elsewhere, same_order)
                instructions += again.instructions
                self.noise(index)
                outcomes = (
                    *compare(prepared, result.regions,
                             prepared.brought_back(again.regions, elsewhere), tolerance),
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
