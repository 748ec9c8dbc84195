"""Recording dispatches: of a kernel's oracle, or captures again with what can be found out."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asmevo.device.device import DeviceFault
from asmevo.device.recorder import Recorder
from asmevo.dispatch.captured import capture as captured
from asmevo.dispatch.captured.folder import write_capture
from asmevo.dispatch.captured.oracle import CapturedOracle, check_kernel
from asmevo.dispatch.captured.trim import check_granule
from asmevo.dispatch.dispatch import Role
from asmevo.report.result import Result, Status
from asmevo.task.session import ConfigError, Session

ALL = "all"


@dataclass(frozen=True)
class Capture:
    """Runs the oracle's dispatches on the device and writes each as a capture of its own.

    ``dispatches`` names them, or is ``all``. What a dispatch leaves untouched in aligned units of
    ``granularity`` bytes is not recorded. Captures are replayed and recorded again: that trims
    what a recorder could not, and finds roles and pointers that it did not know. With
    ``registered`` they are kept in the registry as well.
    """

    dispatches: str | Sequence[str] = ALL
    granularity: int = 4096
    registered: bool = False

    def __post_init__(self) -> None:
        check_granule(self.granularity)

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        original, device = session.code_object, session.device
        metadata = original.kernel(session.symbol).metadata
        recorder = Recorder(device.load(original, session.symbol), metadata, original.sha256,
                            device.name)
        result = Result(
            task="capture", status=Status.CAPTURED, kernel=session.kernel.name,
            symbol=session.symbol, original_sha256=original.sha256, device=device.name,
            folder=str(session.folder))
        found: list[dict[str, Any]] = []
        try:
            for held_out, whole in self._wanted(session, recorder):
                smaller = recorder.reduced(whole, self.granularity)
                folder = _free(session.folder / "captures", whole.name)
                write_capture(smaller, folder, code_object=original.data)
                registered = None
                if self.registered:
                    registry = session.registry
                    registry.record_original(original, session.kernel.source.describe())
                    registered = registry.record_capture(smaller, held_out=held_out)
                found.append(_facts(whole, smaller, folder, registered))
        except DeviceFault as fault:
            result.status, result.error = Status.FAULTED, str(fault)
        result.details = {"captures": found}
        result.wall_seconds = time.monotonic() - started
        return result

    def _wanted(self, session: Session,
                recorder: Recorder) -> Iterator[tuple[bool, captured.Capture]]:
        """The chosen dispatches as captures of all their memory, and whether they are held out."""
        oracle = session.oracle
        seen: list[str] = []
        if isinstance(oracle, CapturedOracle):
            for held_out, capture in oracle.captures():
                check_kernel(capture, recorder.code_object, session.symbol)
                seen.append(capture.name)
                if self._chosen(capture.name):
                    yield held_out, capture
        else:
            for dispatch in oracle.dispatches(session.kernel, session.symbol, recorder.metadata):
                seen.append(dispatch.name)
                if self._chosen(dispatch.name):
                    yield dispatch.held_out, recorder.record(dispatch)
        if self.dispatches != ALL:
            for name in self._names:
                if name not in seen:
                    raise ConfigError(f"task.dispatches: there is no dispatch '{name}' "
                                      f"({', '.join(seen)})")

    @property
    def _names(self) -> Sequence[str]:
        return [self.dispatches] if isinstance(self.dispatches, str) else self.dispatches

    def _chosen(self, name: str) -> bool:
        return self.dispatches == ALL or name in self._names


def _facts(whole: captured.Capture, smaller: captured.Capture, folder: Path,
           registered: str | None) -> dict[str, Any]:
    return {
        "dispatch": smaller.name, "folder": str(folder), "memory": whole.size,
        "kept": smaller.size, "segments": sum(1 for _ in smaller.segments()),
        "outputs": sum(s.size for _, s in smaller.segments() if s.role is Role.OUTPUT),
        "movable": smaller.pointers is not None, "registered": registered,
    }


def _free(parent: Path, name: str) -> Path:
    """A folder in ``parent`` for a capture of that name, which may be anything."""
    safe = re.sub(r"[^\w.+-]", "_", name).strip(".")[:100] or "dispatch"
    folder, count = parent / safe, 1
    while folder.exists():
        count += 1
        folder = parent / f"{safe}-{count}"
    return folder
