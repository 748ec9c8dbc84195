"""Where a kernel's time goes: listing, page and trace of its dispatches."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asmevo.device.device import DeviceFault
from asmevo.dispatch.declared import DeclaredOracle
from asmevo.durable import write_atomically
from asmevo.isa.errors import ControlFlowError
from asmevo.profile.hotwindow import HotWindow
from asmevo.report import occupancy_facts, roofline_plot, window_facts
from asmevo.report.annotated import annotated, by_cause, issues, microseconds, total_stalls
from asmevo.report.chrome_trace import write_trace
from asmevo.report.profile_page import Subject, profile_page
from asmevo.report.result import Result, Status
from asmevo.report.timeline import Timeline
from asmevo.task.candidate import stored_replacement
from asmevo.task.profile_sources import Profiled, Version, from_code, from_device, from_files
from asmevo.task.session import ConfigError, Session
from asmevo.task.shapes import LARGEST

_TRACES: Mapping[str, str] = {"gz": ".trace.json.gz", "json": ".trace.json"}


@dataclass(frozen=True)
class Profile:
    """Profiles dispatches of a kernel, and of a stored replacement beside it (``candidate``).

    ``shapes`` says which (`asmevo.task.shapes.selected`); their inputs are of ``family``. With
    ``static``, and where the YAML declares no launch, the profile is estimated from the code alone.

    With ``samples``, files of rocprofv3, it is what they measured: of the replacement if there is
    one. ``recorded_as`` is what they call the kernel where that is not its symbol, and
    ``skip_ambiguous`` leaves out samples of a text that stands at several places.

    Page and trace have at most ``events`` events of the timeline and say what they leave out;
    ``trace`` is the form of the trace, ``gz`` or ``json``, or null for none. ``shown`` is how many
    hot windows the terminal lists.
    """

    shapes: Any = LARGEST
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
            for profiled in self._profiles(session, versions):
                launches.append(self._report(session, profiled, versions))
                result.device = profiled.profile.device
                if profiled.profile.source in ("measured", "modelled"):
                    result.timing_source = profiled.profile.source
        except DeviceFault as fault:
            result.status, result.error = Status.FAULTED, str(fault)
        result.details = {"shown": self.shown, "launches": launches}
        result.wall_seconds = time.monotonic() - started
        return result

    def _profiles(self, session: Session, versions: Sequence[Version]) -> Iterator[Profiled]:
        if self.samples is not None:
            files = [self.samples] if isinstance(self.samples, str) else self.samples
            if not isinstance(files, Sequence) or not files or not all(
                    isinstance(file, str) and file for file in files):
                raise ConfigError("task.samples must be a file of rocprofv3 or a list of files")
            yield from_files(session, versions[-1], files, recorded_as=self.recorded_as,
                             skip_ambiguous=self.skip_ambiguous)
        elif self.static or (session.kernel.launch is None
                             and isinstance(session.oracle, DeclaredOracle)):
            yield from from_code(session, versions)
        else:
            yield from from_device(session, versions, shapes=self.shapes, family=self.family,
                                   timeline=self.events > 0)

    def _report(self, session: Session, profiled: Profiled,
                versions: Sequence[Version]) -> dict[str, Any]:
        """Write page and trace; what ``result.json`` says of the launch."""
        code, profile, placed = profiled.program, profiled.profile, profiled.roofline
        windows, unknown = _windows(session, profiled)
        listing = annotated(code, profile, windows)
        timeline = Timeline.of(profile, limit=self.events)
        version = profiled.version.name if len(versions) > 1 else ""
        name = _file_name(profile.dispatch, version)
        page = session.folder / f"{name}.html"
        subject = Subject(
            session.symbol, version,
            "" if profiled.room is None else occupancy_facts.sentence(profiled.room),
            {other.name: f"{_file_name(profile.dispatch, other.name)}.html" for other in versions
             if other.name != version and version and self.samples is None})
        write_atomically(page, profile_page(
            subject, code, profile, windows, timeline, placed).encode())
        trace = None
        if self.trace is not None and timeline.waves:
            trace = session.folder / f"{name}{_TRACES[self.trace]}"
            write_trace(trace, code, profile, timeline, kernel=session.symbol)
        return {
            "dispatch": profile.dispatch, "version": profiled.version.name,
            "sha256": profiled.version.code_object.sha256,
            "source": profile.source, "device": profile.device, "cycles": profile.cycles,
            "clock_mhz": profile.clock_mhz,
            "microseconds": microseconds(profile.cycles, profile),
            "timed_microseconds": profile.microseconds or None,
            "scope": profile.scope,
            "issued": issues(profile)[1],
            "waves": len(profile.waves),
            "stalls": by_cause(total_stalls(profile)),
            "roofline": None if placed is None else roofline_plot.to_dict(placed),
            "occupancy": None if profiled.room is None else occupancy_facts.to_dict(profiled.room),
            "windows": [window_facts.to_dict(window, code, listing) for window in windows],
            "windows_summary": unknown or window_facts.sentence(windows),
            "page": str(page), "trace": None if trace is None else str(trace),
        }


def _windows(session: Session, profiled: Profiled) -> tuple[tuple[HotWindow, ...], str]:
    """Hot windows, or why there can be none."""
    try:
        return session.windows.find(profiled.program, [profiled.profile]), ""
    except ControlFlowError as error:
        return (), f"No hot windows: {error}"


def _file_name(dispatch: str, version: str) -> str:
    safe = re.sub(r"[^\w.+-]", "_", dispatch).strip(".")[:100] or "dispatch"
    return f"{safe}-{version}" if version else safe
