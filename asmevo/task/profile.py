"""Where a kernel's time goes: listing, page and trace of its dispatches."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program, whole_program
from asmevo.device.device import DescribedDevice, DeviceFault
from asmevo.dispatch.expression import evaluate
from asmevo.dispatch.kernel import Kernel
from asmevo.durable import write_atomically
from asmevo.isa.errors import ControlFlowError
from asmevo.isa.program import Program
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.machine import Machine
from asmevo.profile.profile import Profile as KernelProfile
from asmevo.profile.rocprof.measured import entry_address, measured_profile, read_recording
from asmevo.profile.roofline import Roofline, roofline
from asmevo.profile.static_estimate import static_estimate
from asmevo.report import roofline_plot, window_facts
from asmevo.report.annotated import annotated, by_cause, issues, microseconds, total_stalls
from asmevo.report.chrome_trace import write_trace
from asmevo.report.profile_page import Subject, profile_page
from asmevo.report.result import Result, Status
from asmevo.report.terminal import waiting
from asmevo.report.timeline import Timeline
from asmevo.task.candidate import stored_replacement
from asmevo.task.session import ConfigError, Session

_TRACES: Mapping[str, str] = {"gz": ".trace.json.gz", "json": ".trace.json"}
_LARGEST = "largest"
_ALL = "all"


@dataclass(frozen=True)
class Version:
    """One code object to profile: the original, or what shall replace it."""

    name: str
    code_object: CodeObject


@dataclass(frozen=True)
class Profile:
    """Profiles dispatches of a kernel, and of a stored replacement beside it (``candidate``).

    ``shapes`` names them: ``largest`` (the shape of most workgroups), ``all`` visible ones, or a
    list of names (``M48``) and of shapes that the YAML does not have (``{M: 96}``). Their inputs
    are of ``family``. With ``static``, and where the YAML declares no launch, the profile is
    estimated from the code alone.

    With ``samples``, files of rocprofv3, it is what they measured: of the replacement if there is
    one. ``recorded_as`` is what they call the kernel where that is not its symbol, and
    ``skip_ambiguous`` leaves out samples of a text that stands at several places.

    Page and trace have at most ``events`` events of the timeline
    and say what they leave out; ``trace`` is the form of the trace, ``gz`` or ``json``, or null for
    none. ``shown`` is how many hot windows the terminal lists.
    """

    shapes: Any = _LARGEST
    family: str = "normal"
    static: bool = False
    samples: Any = None
    recorded_as: str | None = None
    skip_ambiguous: bool = False
    events: int = 400_000
    trace: str | None = "gz"
    shown: int = 3

    def __post_init__(self) -> None:
        if self.trace is not None and self.trace not in _TRACES:
            raise ConfigError(f"task.trace must be {', '.join(_TRACES)} or null, "
                              f"not '{self.trace}'")
        if self.static and self.samples is not None:
            raise ConfigError("task.static and task.samples exclude each other")
        for name in ("events", "shown"):
            if getattr(self, name) < 0:
                raise ConfigError(f"task.{name} must not be negative, not {getattr(self, name)}")

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        versions = [Version("original", session.code_object)]
        if session.config.candidate is not None:
            versions.append(Version("replacement", stored_replacement(session)))
        result = Result(
            task="profile", status=Status.PROFILED, kernel=session.kernel.name,
            symbol=session.symbol, original_sha256=session.code_object.sha256,
            replacement_sha256=versions[1].code_object.sha256 if len(versions) > 1 else None,
            folder=str(session.folder),
        )
        launches: list[dict[str, Any]] = []
        try:
            for version, code, profile, workgroups in self._profiles(session, versions):
                launches.append(self._report(session, version, code, profile, workgroups))
                result.device, result.timing_source = profile.device, _timing_source(profile)
        except DeviceFault as fault:
            result.status, result.error = Status.FAULTED, str(fault)
        result.details = {"shown": self.shown, "launches": launches}
        result.wall_seconds = time.monotonic() - started
        return result

    def _profiles(self, session: Session, versions: Sequence[Version]
                  ) -> Iterator[tuple[Version, Program, KernelProfile, int | None]]:
        """One dispatch after the other, each of all versions, and how many workgroups it has."""
        if self.samples is not None:
            yield (*self._measured(session, versions[-1]), None)
            return
        if self.static or session.kernel.launch is None:
            for version in versions:
                code = program(version.code_object, session.symbol)
                yield version, code, static_estimate(code, _machine(session)), None
            return
        kernel = replace(session.kernel, shapes=selected(session.kernel, self.shapes),
                         held_out_shapes=())
        oracle = replace(session.oracle, families=(self.family,))
        metadata = session.code_object.kernel(session.symbol).metadata
        loaded = [session.device.load(version.code_object, session.symbol) for version in versions]
        for dispatch in oracle.dispatches(kernel, session.symbol, metadata):
            for version, each in zip(versions, loaded, strict=True):
                with waiting(f"{dispatch.name} of the {version.name}"):
                    profile = each.profile(dispatch, timeline=self.events > 0)
                code = _program(version.code_object, session.symbol, profile)
                yield version, code, profile, math.prod(dispatch.grid)

    def _measured(self, session: Session,
                  version: Version) -> tuple[Version, Program, KernelProfile]:
        files = [self.samples] if isinstance(self.samples, str) else self.samples
        if not isinstance(files, Sequence) or not files or not all(
                isinstance(file, str) and file for file in files):
            raise ConfigError("task.samples must be a file of rocprofv3 or a list of files")
        recording = read_recording(Path(file).expanduser() for file in files)
        code = program(version.code_object, session.symbol)
        return version, code, measured_profile(
            recording, code, session.symbol,
            address=entry_address(version.code_object, session.symbol),
            names=[self.recorded_as] if self.recorded_as else [],
            skip_ambiguous=self.skip_ambiguous)

    def _report(self, session: Session, version: Version, code: Program,
                profile: KernelProfile, workgroups: int | None) -> dict[str, Any]:
        """Write page and trace; what ``result.json`` says of the launch."""
        windows, unknown = _windows(session, code, profile)
        placed = _roofline(session, code, profile, workgroups)
        listing = annotated(code, profile, windows)
        subject = Subject(session.symbol, "" if session.config.candidate is None else version.name)
        name = _file_name(profile.dispatch, subject.version)
        page = session.folder / f"{name}.html"
        timeline = Timeline.of(profile, limit=self.events)
        write_atomically(page, profile_page(
            subject, code, profile, windows, timeline, placed).encode())
        trace = None
        if self.trace is not None and timeline.waves:
            trace = session.folder / f"{name}{_TRACES[self.trace]}"
            write_trace(trace, code, profile, timeline, kernel=session.symbol)
        return {
            "dispatch": profile.dispatch, "version": version.name,
            "sha256": version.code_object.sha256,
            "source": profile.source, "device": profile.device, "cycles": profile.cycles,
            "clock_mhz": profile.clock_mhz,
            "microseconds": microseconds(profile.cycles, profile),
            "scope": profile.scope,
            "issued": issues(profile)[1],
            "waves": len(profile.waves),
            "stalls": by_cause(total_stalls(profile)),
            "roofline": None if placed is None else roofline_plot.to_dict(placed),
            "windows": [window_facts.to_dict(window, code, listing) for window in windows],
            "windows_summary": unknown or window_facts.sentence(windows),
            "page": str(page), "trace": None if trace is None else str(trace),
        }


def selected(kernel: Kernel, wanted: object) -> tuple[Mapping[str, int], ...]:
    """The shapes of ``kernel`` that ``task.shapes`` means. Raises `ConfigError`."""
    if wanted == _ALL or not kernel.shapes:
        return tuple(kernel.shapes)
    if wanted == _LARGEST:
        return (max(kernel.shapes, key=lambda shape: _workgroups(kernel, shape)),)
    given = [wanted] if isinstance(wanted, str | Mapping) else wanted
    if not isinstance(given, Sequence) or not given:
        raise ConfigError(f"task.shapes must be {_LARGEST}, {_ALL} or a list of shapes, "
                          f"not '{wanted}'")
    return tuple(_shape(kernel, each) for each in given)


def _shape(kernel: Kernel, wanted: object) -> Mapping[str, int]:
    known = {_label(kernel, shape): shape for shape in (*kernel.shapes, *kernel.held_out_shapes)}
    if isinstance(wanted, str):
        if wanted not in known:
            raise ConfigError(f"task.shapes: kernel '{kernel.name}' has no shape '{wanted}' "
                              f"({', '.join(known)})")
        return known[wanted]
    names = set(kernel.shapes[0])
    if not isinstance(wanted, Mapping) or not all(
            isinstance(value, int) and not isinstance(value, bool) for value in wanted.values()):
        raise ConfigError(f"task.shapes: '{wanted}' is neither a shape's name nor a shape")
    if set(wanted) - set(kernel.constants) != names - set(kernel.constants):
        raise ConfigError(f"task.shapes: a shape of kernel '{kernel.name}' gives "
                          f"{', '.join(sorted(names))}, not {', '.join(sorted(map(str, wanted)))}")
    return wanted


def _label(kernel: Kernel, shape: Mapping[str, int]) -> str:
    """As the dispatches of the declared oracle are named."""
    return "_".join(f"{k}{v}" for k, v in shape.items() if k not in kernel.constants) or "only"


def _workgroups(kernel: Kernel, shape: Mapping[str, int]) -> int:
    names = {**kernel.constants, **shape}
    count = 1
    for extent in kernel.launch.grid if kernel.launch is not None else ():
        count *= evaluate(extent, names)
    return count


def _program(code_object: CodeObject, symbol: str, profile: KernelProfile) -> Program:
    """The program whose instructions the profile counts: with the functions it calls, if any."""
    alone = program(code_object, symbol)
    if len(alone) == len(profile.instructions):
        return alone
    return whole_program(code_object, symbol)


def _machine(session: Session) -> Machine:
    device = session.device
    if not isinstance(device, DescribedDevice):
        raise ConfigError(f"the device {device.name} does not say how fast it is, which a static "
                          "estimate needs")
    return device.machine


def _roofline(session: Session, code: Program, profile: KernelProfile,
              workgroups: int | None) -> Roofline | None:
    """Only what counts everything on a device with known ceilings can be placed under them."""
    if profile.source != "modelled" or not isinstance(session.device, DescribedDevice):
        return None
    return roofline(profile, code, session.device.machine, workgroups=workgroups)


def _windows(session: Session, code: Program,
             profile: KernelProfile) -> tuple[tuple[HotWindow, ...], str]:
    """Hot windows, or why there can be none."""
    try:
        return session.windows.find(code, [profile]), ""
    except ControlFlowError as error:
        return (), f"No hot windows: {error}"


def _timing_source(profile: KernelProfile) -> str | None:
    return profile.source if profile.source in ("measured", "modelled") else None


def _file_name(dispatch: str, version: str) -> str:
    safe = re.sub(r"[^\w.+-]", "_", dispatch).strip(".")[:100] or "dispatch"
    return f"{safe}-{version}" if version else safe

