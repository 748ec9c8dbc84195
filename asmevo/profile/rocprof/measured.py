"""A `Profile` from what ``rocprofv3`` recorded of a kernel.

A sample stands for one issue turn of one wave (4 clk): issued samples are counted as issues, others
as a turn of stall. Nothing is scaled up to the launch, since only shares mean anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path
from statistics import median

from asmevo.codeobject.container import CodeObject
from asmevo.errors import AsmEvoError
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.profile.analysis import Analysis
from asmevo.profile.errors import ProfileError
from asmevo.profile.pipes import TURN
from asmevo.profile.profile import InstructionProfile, Profile, StallCause
from asmevo.profile.rocprof.csv_files import read_csv
from asmevo.profile.rocprof.json_files import read_json
from asmevo.profile.rocprof.recording import Launch, Method, Recording, Sample
from asmevo.profile.rocprof.stall_reasons import cause_at, stall_cause

_SHOWN = 60
# Cycles that all XCDs counted as busy, added up (rocprofiler-sdk, derived counters of GRBM).
_BUSY = "GRBM_GUI_ACTIVE"
_MHZ_PER_CLK_PER_NS = 1000


def read_recording(paths: Iterable[Path]) -> Recording:
    """Everything that some files say: JSON results, CSV files of samples, counters, kernel trace
    and agents. Raises ProfileError with one sentence for a file that is not one of these."""
    recording = Recording()
    for path in paths:
        if path.suffix.lower() == ".json":
            read_json(path, recording)
        else:
            read_csv(path, recording)
    return recording


def entry_address(code_object: CodeObject, kernel: str) -> int:
    """Where a kernel starts from where its code object is loaded. Raises CodeObjectError."""
    return code_object.section(".text").address + code_object.kernel(kernel).entry


def measured_profile(recording: Recording, program: Program, kernel: str, *, address: int = 0,
                     names: Collection[str] = (), device: str = "", clock_mhz: int = 0,
                     skip_ambiguous: bool = False) -> Profile:
    """The profile of ``program``, the code of ``kernel``, over all its recorded dispatches.

    ``address`` is the kernel's in its code object (`entry_address`), with which samples of JSON
    files are placed; their texts must be those of ``program``. CSV files have texts only: one that
    stands at several places is refused, or left out with ``skip_ambiguous``, and all samples must
    be of this kernel where no kernel trace tells which are. ``names`` are further names of the
    kernel, such as the demangled one that kernel traces show. ``device`` and ``clock_mhz`` are the
    recorded GPU's unless given: the clock is the busy cycles over the durations where both were
    recorded, else the highest engine clock. ``cycles`` are the median duration's, 0 if unknown.

    Raises ProfileError when nothing was recorded of the kernel, and ControlFlowError.
    """
    if recording.method is None:
        raise ProfileError("the files have no PC samples")
    known = {kernel, *names}
    launches = [launch for launch in recording.launches.values() if launch.kernels & known]
    if recording.launches and not launches:
        shown = sorted(n for launch in recording.launches.values() for n in launch.kernels)
        raise ProfileError(f"no dispatch of '{kernel[:_SHOWN]}' was recorded, only of "
                           f"{', '.join(n[:_SHOWN] for n in dict.fromkeys(shown))}")
    placed = _Placed(program, recording, known, address, skip_ambiguous)
    wanted = {launch.dispatch for launch in launches}
    for sample, count in recording.samples.items():
        if not recording.launches or sample.dispatch in wanted:
            placed.add(sample, count)
    instructions = placed.instructions(recording.method)
    if not placed.total:
        raise ProfileError(f"no PC sample of '{kernel[:_SHOWN]}' was recorded")
    agent = recording.agents[0] if recording.agents else None
    clock, origin = _clock(recording, launches, clock_mhz)
    nanoseconds = median(launch.nanoseconds for launch in launches) if launches else 0
    dispatches = len({s.dispatch for s in recording.samples})
    return Profile(
        f"{len(launches) or dispatches} recorded dispatches", "measured",
        device or (agent.name if agent and agent.name else "unnamed GPU"),
        round(nanoseconds * clock / _MHZ_PER_CLK_PER_NS), instructions, clock_mhz=round(clock),
        scope=placed.scope(recording.method) + origin)


class _Placed:
    """Samples by instruction."""

    def __init__(self, program: Program, recording: Recording, names: Set[str],
                 address: int, skip_ambiguous: bool) -> None:
        self._program = program
        self._recording = recording
        self._names = names
        self._index_at = {address + offset: index
                          for index, offset in enumerate(program.offsets[:-1])}
        self._extent = range(address + program.offsets[0], address + program.offsets[-1])
        self._skip = skip_ambiguous
        self._texts = [i.text for i in program.instructions]
        self._canonical: dict[str, str] = {}
        self._places: dict[str, list[int]] = {}
        for index, text in enumerate(self._texts):
            self._places.setdefault(self._key(text), []).append(index)
        self._issued: Counter[int] = Counter()
        self._stalled: Counter[tuple[int, str]] = Counter()
        self.total = self.ambiguous = self.undecoded = 0

    def add(self, sample: Sample, count: int) -> None:
        index = self._by_text(sample, count) if sample.offset is None else self._by_offset(sample)
        if index is None:
            return
        self.total += count
        if sample.issued:
            self._issued[index] += count
        else:
            self._stalled[index, sample.reason] += count

    def instructions(self, method: Method) -> tuple[InstructionProfile, ...]:
        counters = _counters_waited_for(self._program) if self._stalled else {}
        stalls: list[Counter[StallCause]] = [Counter() for _ in self._program.instructions]
        for (index, reason), count in self._stalled.items():
            instruction, waited = self._program.instructions[index], counters.get(
                index, frozenset())
            cause = (stall_cause(reason, instruction, waited) if method is Method.STOCHASTIC
                     else cause_at(instruction, waited))
            stalls[index][cause] += count * TURN
        return tuple(InstructionProfile(self._issued[index], dict(found))
                     for index, found in enumerate(stalls))

    def scope(self, method: Method) -> str:
        parts = [f"{self.total} PC samples ({method.value}), each one turn of {TURN} clk of a wave"]
        if method is Method.HOST_TRAP:
            parts.append("without issue counts or reasons; a place may be two instructions off")
        else:
            parts.append("waits for both counters count as vmcnt")
        if self.ambiguous:
            parts.append(f"{self.ambiguous} of instructions that stand at several places left out")
        if self.undecoded:
            parts.append(f"{self.undecoded} that the profiler could not place left out")
        return "; ".join(parts)

    def _by_offset(self, sample: Sample) -> int | None:
        """Where a sample of the kernel's code object is; `None` for one of other code."""
        offset, known = sample.offset, self._recording.kernels
        if offset is None or offset not in self._extent or (
                known and not known.get(sample.code_object or 0, set()) & self._names):
            return None
        index = self._index_at.get(offset)
        if index is None:
            raise ProfileError(f"a sample at offset {offset:#x} is inside an instruction: "
                               "the recording is of another build of the kernel")
        if sample.text and self._key(sample.text) != self._key(self._texts[index]):
            raise ProfileError(
                f"the recording has '{sample.text[:_SHOWN]}' at offset {offset:#x}, the "
                f"kernel '{self._texts[index][:_SHOWN]}': it is of another build")
        return index

    def _by_text(self, sample: Sample, count: int) -> int | None:
        if not sample.text:
            self.undecoded += count
            return None
        places = self._places.get(self._key(sample.text), ())
        if not places:
            raise ProfileError(f"the recording has '{sample.text[:_SHOWN]}', which the kernel has "
                               "not: give the kernel trace, or a recording of this build")
        if len(places) == 1:
            return places[0]
        if not self._skip:
            raise ProfileError(
                f"'{sample.text[:_SHOWN]}' stands at {len(places)} places of the kernel and a CSV "
                "file does not tell which was sampled: record with --output-format json")
        self.ambiguous += count
        return None

    def _key(self, text: str) -> str:
        """A text in LLVM's present form; branches by operation only, targets have many forms."""
        known = self._canonical.get(text)
        if known is None:
            try:
                instruction = parse(text)
            except AsmEvoError:
                raise ProfileError(
                    f"the recording has '{text[:_SHOWN]}', which is no instruction") from None
            known = instruction.op if instruction.is_branch else instruction.text
            self._canonical[text] = known
        return known


def _counters_waited_for(program: Program) -> Mapping[int, frozenset[StallCause]]:
    """Per ``s_waitcnt``, the counters of what it may wait for, or those it names."""
    found: dict[int, frozenset[StallCause]] = {}
    awaited = Analysis(program).awaited
    for index, instruction in enumerate(program.instructions):
        wait = instruction.wait
        if wait is None:
            continue
        operations = [program.instructions[k] for k in awaited.get(index, ())]
        vmcnt = [i for i in operations if i.vmcnt] if operations else wait.vmcnt is not None
        lgkmcnt = [i for i in operations if i.lgkmcnt] if operations else wait.lgkmcnt is not None
        found[index] = frozenset(
            cause for cause, held in ((StallCause.VMCNT, vmcnt), (StallCause.LGKMCNT, lgkmcnt))
            if held)
    return found


def _clock(recording: Recording, launches: Sequence[Launch],
           given: int) -> tuple[float, str]:
    if given:
        return float(given), ""
    agent = recording.agents[0] if recording.agents else None
    if agent is None:
        return 0.0, "; clock unknown"
    if agent.xcds:
        clocks = [
            recording.counters[launch.dispatch][_BUSY] / agent.xcds / launch.nanoseconds
            * _MHZ_PER_CLK_PER_NS for launch in launches
            if launch.nanoseconds and _BUSY in recording.counters.get(launch.dispatch, {})]
        if clocks and 0 < median(clocks) <= agent.clock_mhz:
            return median(clocks), f"; clock from {_BUSY}"
    return float(agent.clock_mhz), "; at the highest engine clock"
