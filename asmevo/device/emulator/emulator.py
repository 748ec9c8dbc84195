"""The gfx942 emulator as a `Device`: functional execution in C++, times from the cycle model."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Literal

import asmevo_core as core
import numpy as np
import numpy.typing as npt

from asmevo.codeobject import disassemble
from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.target import Feature
from asmevo.device.device import (
    DeviceFault,
    LaunchState,
    RunResult,
    Timing,
    TimingSource,
    UnsupportedError,
)
from asmevo.device.emulator import checked, launch, lower, settings
from asmevo.device.emulator.dispatch_packet import PACKET_BYTES, dispatch_packet
from asmevo.device.emulator.hidden_arguments import with_hidden_arguments
from asmevo.device.emulator.image import code_address, image, other_kernels, own_instructions
from asmevo.device.emulator.machine import machine as machine_of
from asmevo.device.emulator.mapped_regions import Bytes, MappedRegions
from asmevo.device.emulator.residency import ResidencyError, residency
from asmevo.device.emulator.sampling import Sample
from asmevo.device.emulator.sanitizer import SanitizerResult, result_of
from asmevo.device.emulator.timing import TimingModel
from asmevo.device.emulator.timing_result import TimingResult
from asmevo.dispatch.dispatch import Dispatch, Role
from asmevo.isa.errors import ControlFlowError
from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.isa.violation import Violation
from asmevo.profile.machine import Machine
from asmevo.profile.profile import Profile

_TARGET = "gfx942"
_POISON_MASK = (1 << 64) - 1
# VCC, FLAT_SCRATCH and XNACK_MASK are allocated behind a wave's own SGPRs (LLVM, getNumExtraSGPRs).
_EXTRA_SGPRS = 6
_DEFAULT_STATE = LaunchState()
# Scratch of all waves at a time; a driver limits how many there are in the same way.
_SCRATCH_BYTES = 1 << 30
_COMPUTE_UNITS = 304  # of an MI300X (AMD CDNA3 white paper)
_TRACED_WORKGROUPS = 256  # whose instructions a trace holds at a time
_TIMELINE_EVENTS = 400_000  # what a page can draw and a trace viewer opens


class MatrixSums(StrEnum):
    """How a matrix operation adds products of 8- and 16-bit floats and of xf32 to f32.

    f32, f64 and integer products are the same either way, and those of sparse operations are
    always sequential.
    """

    # In order of rising k, each exact product with one rounding to nearest even: the fastest.
    SEQUENTIAL = "sequential"
    # As measured on MI300X (arXiv 2511.10909): groups of products aligned and truncated. AITER's
    # attention and fmoe kernels run a quarter to a fifth as fast with it.
    CDNA3 = "cdna3"


class Emulator:
    """gfx942 without a GPU.

    A load reads memory when it issues and writes its registers only when an ``s_waitcnt``
    guarantees the result, so a kernel that reads too early always gets the stale value; for a
    dispatch that relies on time, results return some instructions after issue, and waves stay
    closer together. Stores take effect when they issue. Registers and LDS are undefined at launch
    and filled from `LaunchState.poison`. Floating point follows the MODE register, and every NaN
    that arithmetic gives is the quiet one of `LaunchState.nan`. ``s_memtime`` counts four
    cycles for each instruction of its wave.

    Workgroups run as if each were alone, in launch order, as long as none touches what another
    wrote; atomics without return do not count, and take effect in launch order. Otherwise the
    launch starts over with as many workgroups resident as the device holds, which take turns.
    Neither the bytes nor the faults depend on ``threads``, the host threads of a launch.

    ``model`` names the GPU, and ``timing`` is its cycle model. `name`, recorded with every timing,
    ends in a digest of the cycle model's parameters, so that times of different models are never
    taken for one another's. ``instruction_budget``
    bounds the wave-instructions of one launch, ``watchdog_seconds`` its host time (0: not at all).
    ``matrix_sums`` is how matrix operations add up products of 8- and 16-bit floats and xf32.
    Without ``timing`` kernels run, but are not timed. Raises `SettingError` for what these cannot
    be.
    """

    def __init__(self, model: str, timing: TimingModel | None,
                 instruction_budget: int = 200_000_000,
                 threads: int | Literal["auto"] = 1, watchdog_seconds: float = 0.0,
                 matrix_sums: MatrixSums | str = MatrixSums.SEQUENTIAL) -> None:
        self._model = f"emulator:{_TARGET}:{model}"
        self._timing = timing
        if timing is not None and not isinstance(timing, TimingModel):
            raise settings.SettingError(f"device.timing must be a timing model or null, not "
                                        f"'{timing}'")
        self.instruction_budget = settings.instruction_budget(instruction_budget)
        self.matrix_sums = MatrixSums(settings.one_of("matrix_sums", matrix_sums, MatrixSums))
        self.threads = settings.thread_count(threads)
        self.watchdog_seconds = settings.watchdog_seconds(watchdog_seconds)
        self._last_mapped: MappedRegions | None = None

    @property
    def timing(self) -> TimingModel:
        """The cycle model. Raises `UnsupportedError` when the emulator was given none."""
        if self._timing is None:
            raise UnsupportedError(f"'{self._model}' has no timing model")
        return self._timing

    def resident_workgroups(self, *, vgprs: int, agprs: int, sgprs: int, lds_bytes: int,
                            waves: int) -> int:
        """How many workgroups of ``waves`` waves the device holds at the same time."""
        if self._timing is None:
            return _COMPUTE_UNITS
        machine = self._timing.parameters.machine
        try:
            room = residency(machine, vgprs=vgprs, agprs=agprs, sgprs=sgprs, lds_bytes=lds_bytes,
                             workgroup_waves=waves)
        except ResidencyError:
            return machine.compute_units
        return machine.compute_units * room.whole_workgroups(waves)

    @cached_property
    def name(self) -> str:
        model = repr((self.timing.parameters, self.timing.sampling))
        digest = hashlib.sha256(model.encode()).hexdigest()
        sums = "" if self.matrix_sums is MatrixSums.SEQUENTIAL else f":{self.matrix_sums.value}"
        return f"{self._model}:{digest[:8]}{sums}"

    @property
    def source(self) -> TimingSource:
        return TimingSource.MODELLED

    @cached_property
    def machine(self) -> Machine:
        """What rooflines and static estimates need of the cycle model."""
        return machine_of(self.timing.parameters, self.name)

    @property
    def deterministic(self) -> bool:
        return True

    def mapped(self, dispatch: Dispatch) -> MappedRegions:
        """What is mapped of each region. A dispatch is mostly launched several times in a row."""
        last = self._last_mapped
        if last is None or last.dispatch is not dispatch:
            last = self._last_mapped = MappedRegions(dispatch)
        return last

    def load(self, code_object: CodeObject, kernel: str) -> EmulatedKernel:
        """Lower a kernel. Raises `UnsupportedError` naming the first thing that cannot run."""
        if code_object.target.isa != _TARGET:
            raise UnsupportedError(f"the emulator runs {_TARGET} kernels, not "
                                   f"{code_object.target.isa}")
        if code_object.target.sramecc is Feature.OFF:
            raise UnsupportedError("the emulated device has ECC on, the code object is for "
                                   "sramecc-")
        program = disassemble.program(code_object, kernel)
        if lower.jumps_indirectly(program):
            program = disassemble.whole_program(code_object, kernel)
        return EmulatedKernel(self, code_object.kernel(kernel), program, code_object)


@dataclass(slots=True)
class _Execution:
    """The regions that a launch may write, behind it, and how many wave-instructions it took."""

    regions: tuple[bytes, ...]
    instructions: int


@dataclass(slots=True)
class _Check:
    """What the sanitizer of a launch is made of."""

    dispatch: Dispatch
    records: Bytes
    hazards: tuple[Violation, ...]
    lds_bytes: int
    sanitizer: core.Sanitizer | None = None

    def prepare(self, program: core.Program, launch_data: list[tuple[int, int, int, bool]]) -> None:
        """``launch_data`` are address, mapped and defined bytes of what the launch adds to memory,
        and whether it may be written: compilers widen the load of a kernarg's tail, which is
        undefined there but no fault."""
        self.sanitizer = core.Sanitizer(
            program, self.records,
            hazards=[(v.producer, v.consumer, v.needed) for v in self.hazards],
            regions=[*((r.base, len(r.data) + 2 * r.guard, r.address, len(r.data), r.role.written,
                        r.role is Role.OUTPUT, True) for r in self.dispatch.regions),
                     *((address, size, address, defined, writable, False, False)
                       for address, size, defined, writable in launch_data)],
            lds_bytes=self.lds_bytes)


def _whole(dispatch: Dispatch, written: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """All regions behind a launch: what it may not write holds what it held before."""
    return tuple(after if region.role.written else region.mapped
                 for region, after in zip(dispatch.regions, written, strict=True))


class EmulatedKernel:
    """One lowered kernel; a `LoadedKernel`."""

    def __init__(self, emulator: Emulator, kernel: Kernel, program: Program,
                 code_object: CodeObject | None = None) -> None:
        self._emulator = emulator
        self._kernel = kernel
        self.program = program
        self._layout = launch.register_layout(kernel.descriptor)
        if self._layout.entry not in program.offsets[:-1]:
            raise UnsupportedError(f"'{kernel.symbol}' preloads arguments but has no instruction "
                                   f"at {self._layout.entry:#x}, where it would be entered")
        self._entry = program.offsets.index(self._layout.entry)
        address = None if code_object is None else code_address(code_object, kernel)
        # Other kernels have no business in their code object, and find nothing mapped there.
        used = code_object if lower.reads_program_counter(program) else None
        self._image = image(used) if used is not None else ()
        addresses = ([address + offset for offset in program.offsets[:-1]]
                     if address is not None and lower.jumps_indirectly(program) else [])
        own = range(len(program)) if code_object is None else own_instructions(kernel, program)
        others = other_kernels(code_object, kernel, program) if code_object is not None else ()
        lowered = lower.lower_object(program, address, own, others)
        try:
            self._core = core.Program(
                lowered.records, vgprs=self._layout.vgprs, agprs=self._layout.agprs,
                mode=launch.float_mode(kernel.descriptor), addresses=addresses,
                fused_matrix_sums=emulator.matrix_sums is MatrixSums.CDNA3,
                own=(own.start, own.stop))
        except core.InvalidRecordError as error:
            index, what = error.args
            raise lower.unsupported(program, index, what) from None
        # Functions that the kernel may never call; arriving there is a fault.
        self._refused = dict(self._core.refused) | lowered.refused

    def run(self, dispatch: Dispatch, state: LaunchState = _DEFAULT_STATE, *,
            limit: int | None = None) -> RunResult:
        """Launch once. Raises `DeviceFault` or `UnsupportedError`; the dispatch is not changed."""
        found = self.written(dispatch, state, limit=limit)
        return RunResult(_whole(dispatch, found.regions), found.instructions, found.seconds)

    def written(self, dispatch: Dispatch, state: LaunchState = _DEFAULT_STATE, *,
                limit: int | None = None) -> RunResult:
        """`run`, but that regions which the launch may not write are left empty."""
        order = launch.workgroup_order(dispatch, state)
        started = time.perf_counter()
        execution = self._execute(dispatch, state, order, None, limit)
        seconds = time.perf_counter() - started
        return RunResult(execution.regions, execution.instructions, seconds)

    def sanitize(self, dispatch: Dispatch, state: LaunchState = _DEFAULT_STATE, *,
                 limit: int | None = None) -> SanitizerResult:
        """Launch once with shadow state and report what a GPU hides; see docs/sanitizer.md.

        The launch computes what :meth:`run` does, on one host thread. A fault ends it and is part
        of the result. Raises `UnsupportedError`.
        """
        order = launch.workgroup_order(dispatch, state)
        check = _Check(dispatch, self._check_records, self._hazards,
                       self._kernel.descriptor.group_segment_fixed_size + dispatch.dynamic_lds)
        execution, fault = _Execution((), 0), None
        try:
            execution = self._execute(dispatch, state, order, None, limit, check)
        except DeviceFault as caught:
            fault = caught
        if check.sanitizer is None:
            raise AssertionError("a launch without a sanitizer")
        regions = _whole(dispatch, execution.regions) if fault is None else ()
        return result_of(self.program, dispatch, check.sanitizer, self._hazards, fault,
                         regions, execution.instructions)

    @cached_property
    def _check_records(self) -> Bytes:
        return checked.check_records(self.program, self._refused)

    @cached_property
    def _hazards(self) -> tuple[Violation, ...]:
        try:
            return checked.hazard_pairs(self.program)
        except ControlFlowError as error:
            raise UnsupportedError(f"the sanitizer cannot check '{self._kernel.symbol}': "
                                   f"{error}") from None

    @cached_property
    def _learns_of_others(self) -> bool:
        """Whether atomics return what other workgroups left in memory."""
        return any(i.is_atomic and i.unit is not Unit.LDS and i.writes
                   for i in self.program.instructions)

    def time(self, dispatch: Dispatch, state: LaunchState = _DEFAULT_STATE, *, samples: int,
             warmup: int) -> Timing:
        """One modelled latency: repeating a deterministic model would only pretend to a spread."""
        result = self._simulate(dispatch, state)
        return Timing(dispatch.name, (result.microseconds,), TimingSource.MODELLED,
                      self._emulator.name)

    def profile(self, dispatch: Dispatch, state: LaunchState = _DEFAULT_STATE, *,
                timeline: bool = False) -> Profile:
        """Where the time goes on the slowest simulated compute units, modelled."""
        result = self._simulate(dispatch, state, _TIMELINE_EVENTS if timeline else 0)
        return result.profile(self.program, dispatch.name, self._emulator.name)

    def trace(self, dispatch: Dispatch, workgroups: npt.NDArray[np.uint32],
              state: LaunchState = _DEFAULT_STATE) -> core.Trace:
        """Execute ``workgroups`` (linear ids) and record what their waves did.

        Only they run, one after another, unless the kernel has atomics that return what was there,
        or one runs for as long as if it waited for another: then the whole launch runs, with as
        many workgroups resident as the device holds.
        """
        trace = core.Trace()
        self._execute(dispatch, state, workgroups, trace)
        return trace

    def arguments(self, dispatch: Dispatch) -> bytes:
        """The kernarg segment of a launch. Raises `UnsupportedError`."""
        return with_hidden_arguments(self._kernel, dispatch)

    def touched(self, dispatch: Dispatch) -> npt.NDArray[np.uint64]:
        """Addresses of the lines that a launch touches, of what it adds to memory as well.

        Raises `DeviceFault` and `UnsupportedError`, also for what only a trace cannot run.
        """
        order = launch.workgroup_order(dispatch, _DEFAULT_STATE)
        # Workgroups that learn of one another run together whichever are traced.
        step = len(order) if self._learns_of_others else _TRACED_WORKGROUPS
        lines = [self.trace(dispatch, order[first:first + step]).touched_lines()
                 for first in range(0, len(order), step)]
        return np.unique(np.concatenate(lines)) * np.uint64(core.LINE_BYTES)

    def under(self, models: Sequence[TimingModel], dispatch: Dispatch,
              state: LaunchState = _DEFAULT_STATE, *,
              timeline_limit: int = 0) -> list[TimingResult]:
        """One emulated launch timed under several models.

        For each the slowest of what it simulates: work may not be the same for every workgroup.
        """
        # Other dispatches have other parts simulated.
        seed = (state.poison & _POISON_MASK, *dispatch.grid,
                *(len(region.data) for region in dispatch.regions))
        samples = [model.samples(dispatch.grid, seed=seed) for model in models]
        traced = sorted({workgroup for chosen in samples for sample in chosen
                         for workgroup in sample.workgroups})
        trace = self.trace(dispatch, np.asarray(traced, dtype=np.uint32), state)
        return [
            max((self.timed(model, trace, dispatch, sample, timeline_limit=timeline_limit)
                 for sample in chosen), key=lambda result: result.cycles)
            for model, chosen in zip(models, samples, strict=True)
        ]

    def timed(self, model: TimingModel, trace: core.Trace, dispatch: Dispatch, sample: Sample, *,
              timeline_limit: int = 0) -> TimingResult:
        """Time a sample of a dispatch, of which ``trace`` has all workgroups."""
        x, y, z = dispatch.workgroup
        descriptor = self._kernel.descriptor
        seconds = self._emulator.watchdog_seconds
        try:
            return model.run(
                self.program, trace, sample, vgprs=self._layout.vgprs, agprs=self._layout.agprs,
                sgprs=descriptor.next_free_sgpr + _EXTRA_SGPRS,
                lds_bytes=launch.lds_bytes(descriptor, dispatch),
                workgroup_waves=-(-x * y * z // 64),
                buffers=[(region.address, len(region.data)) for region in dispatch.regions],
                timeline_limit=timeline_limit, seconds=seconds)
        except TimeoutError:
            raise DeviceFault(f"timing dispatch '{dispatch.name}' took longer than the watchdog's "
                              f"{seconds:g} s of host time", kind="timeout") from None

    def _simulate(self, dispatch: Dispatch, state: LaunchState,
                  timeline_limit: int = 0) -> TimingResult:
        (result,) = self.under([self._emulator.timing], dispatch, state,
                               timeline_limit=timeline_limit)
        return result

    def _execute(self, dispatch: Dispatch, state: LaunchState, order: npt.NDArray[np.uint32],
                 trace: core.Trace | None, limit: int | None = None,
                 check: _Check | None = None) -> _Execution:
        launch.check_dispatch(self._kernel, dispatch)
        lds_bytes = launch.lds_bytes(self._kernel.descriptor, dispatch)
        arguments = with_hidden_arguments(self._kernel, dispatch)
        kernarg = launch.kernarg_segment(arguments, state)
        taken = [(region.base, len(region.data) + 2 * region.guard) for region in dispatch.regions]
        taken += [(section.address, len(section.data)) for section in self._image]
        address = launch.free_address(taken, len(kernarg))
        packet_address = launch.free_address([*taken, (address, len(kernarg))], PACKET_BYTES)
        packet = dispatch_packet(dispatch, state, private_bytes=self._layout.private_bytes,
                                 lds_bytes=lds_bytes, kernarg=address)
        mapped = self._emulator.mapped(dispatch)
        # Nothing may write an input, not even to put back what it overwrote.
        written = [region.role.written for region in dispatch.regions]
        buffers = mapped.take_buffers()
        regions = [(region.name, region.base, buffer, writable) for region, buffer, writable
                   in zip(dispatch.regions, buffers, written, strict=True)]
        initial = [array if writable else None
                   for array, writable in zip(mapped.initial, written, strict=True)]
        try:
            memory = core.Memory(
                [*regions, ("kernarg", address, kernarg, False),
                 ("dispatch packet", packet_address, packet, False),
                 *((s.name, s.address, s.mapped(), s.writable) for s in self._image)],
                [*initial, None, None, *(s.mapped() for s in self._image)])
        except ValueError as error:
            raise UnsupportedError(f"dispatch '{dispatch.name}': {error}") from None
        if check is not None:
            check.prepare(self._core, [
                (address, len(kernarg), len(arguments), False),
                (packet_address, len(packet), len(packet), False),
                *((s.address, len(s.mapped()), len(s.mapped()), s.writable)
                  for s in self._image)])
        budget = self._emulator.instruction_budget
        if limit is not None:
            budget = min(budget, limit)
        user_sgprs = launch.user_sgprs(self._layout, kernarg, {
            "dispatch_ptr": packet_address, "kernarg_segment_ptr": address,
            "private_segment_size": self._layout.private_bytes})
        try:
            instructions = core.launch(
                self._core, memory, order, grid=dispatch.grid, workgroup=dispatch.workgroup,
                user_sgprs=user_sgprs, group_id_sgprs=self._layout.workgroup_ids,
                work_item_dimensions=self._layout.work_item_dimensions, lds_bytes=lds_bytes,
                poison=state.poison & _POISON_MASK, nan=state.nan,
                instruction_budget=budget, resident=self._resident(dispatch, state, lds_bytes),
                threads=min(self._emulator.threads, self._with_scratch(dispatch)),
                seconds=self._emulator.watchdog_seconds, trace=trace,
                private_bytes=self._layout.private_bytes, entry=self._entry,
                prompt_returns=dispatch.relies_on_time,
                everyone=None if trace is None else launch.workgroup_order(dispatch, state),
                together=trace is not None and self._learns_of_others,
                sanitizer=None if check is None else check.sanitizer)
        except core.FaultError as fault:
            raise self._fault(fault) from None
        except ValueError as error:
            raise UnsupportedError(f"dispatch '{dispatch.name}': {error}") from None
        after = tuple(buffer.tobytes() if writable else b""
                      for buffer, writable in zip(buffers, written, strict=True))
        mapped.give_back(buffers)
        return _Execution(after, instructions)

    def _resident(self, dispatch: Dispatch, state: LaunchState, lds_bytes: int) -> int:
        if state.resident is not None:
            return min(state.resident, self._with_scratch(dispatch))
        x, y, z = dispatch.workgroup
        waves = -(-x * y * z // 64)
        resident = self._emulator.resident_workgroups(
            vgprs=self._layout.vgprs, agprs=self._layout.agprs,
            sgprs=self._kernel.descriptor.next_free_sgpr + _EXTRA_SGPRS, lds_bytes=lds_bytes,
            waves=waves)
        return min(resident, self._with_scratch(dispatch))

    def _with_scratch(self, dispatch: Dispatch) -> int:
        """How many workgroups may have their scratch at the same time."""
        x, y, z = dispatch.workgroup
        scratch = -(-x * y * z // 64) * 64 * self._layout.private_bytes
        return max(1, _SCRATCH_BYTES // max(scratch, 1))

    def _fault(self, fault: core.FaultError) -> DeviceFault:
        kind, message, index, workgroup, lane, address = fault.args
        pc = self.program.offsets[index]
        text = self.program.instructions[index].text if index < len(self.program) else ""
        if index in self._refused:
            message = f"the kernel cannot run this instruction: {self._refused[index]}"
        where = f"'{text}' at offset {pc:#x}" if text else f"offset {pc:#x}"
        return DeviceFault(f"{where} in workgroup {workgroup}: {message}", kind=kind, pc=pc,
                           text=text, lane=lane, address=address)
