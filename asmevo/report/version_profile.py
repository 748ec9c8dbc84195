"""What a profile knows of one version of a kernel, as a run folder keeps it.

``profiles.json`` holds the original's and the winner's on the dispatch that takes longest, so that
a report can be made again without a device.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asmevo.durable import write_atomically
from asmevo.errors import AsmEvoError
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import Profile, StallCause

SCHEMA = "asmevo.profiles/1"
FILE = "profiles.json"
ORIGINAL, WINNER = "original", "winner"


class StoredProfileError(AsmEvoError):
    """A stored profile is malformed."""


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """The figures of a hot window (`asmevo.profile.hotwindow`)."""

    start: int
    stop: int
    share: float
    cause: StallCause
    stalled: int
    stalls: Mapping[StallCause, int]
    recoverable: int
    executions: int
    loop_depth: int
    trip_count: float | None


@dataclass(frozen=True, slots=True)
class VersionProfile:
    """``issued[i]`` and ``stalls[i]`` belong to instruction *i*; ``sha256`` is the object's."""

    sha256: str
    dispatch: str
    source: str
    device: str
    cycles: int
    clock_mhz: int
    scope: str
    issued: tuple[int, ...]
    stalls: tuple[Mapping[StallCause, int], ...]
    windows: tuple[StoredWindow, ...]

    @classmethod
    def of(cls, sha256: str, profile: Profile, windows: Sequence[HotWindow]) -> VersionProfile:
        return cls(
            sha256, profile.dispatch, profile.source, profile.device, profile.cycles,
            profile.clock_mhz, profile.scope,
            tuple(counts.issued for counts in profile.instructions),
            tuple({cause: clk for cause, clk in counts.stalls.items() if clk}
                  for counts in profile.instructions),
            tuple(StoredWindow(w.start, w.stop, w.share, w.cause, w.stalled, dict(w.causes),
                               w.recoverable, w.executions, w.loop_depth, w.trip_count)
                  for w in windows))

    @property
    def by_cause(self) -> Counter[StallCause]:
        total: Counter[StallCause] = Counter()
        for stalls in self.stalls:
            total.update(stalls)
        return total

    @property
    def microseconds(self) -> float | None:
        return self.cycles / self.clock_mhz if self.cycles and self.clock_mhz else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "sha256": self.sha256, "dispatch": self.dispatch, "source": self.source,
            "device": self.device, "cycles": self.cycles, "clock_mhz": self.clock_mhz,
            "scope": self.scope, "issued": list(self.issued),
            "stalls": [_plain(stalls) for stalls in self.stalls],
            "windows": [{
                "start": w.start, "stop": w.stop, "share": w.share, "cause": w.cause.value,
                "stalled": w.stalled, "stalls": _plain(w.stalls), "recoverable": w.recoverable,
                "executions": w.executions, "loop_depth": w.loop_depth,
                "trip_count": w.trip_count} for w in self.windows],
        }


def _plain(stalls: Mapping[StallCause, int]) -> dict[str, int]:
    return {cause.value: clk for cause, clk in stalls.items() if clk}


def _causes(stalls: Mapping[str, Any]) -> dict[StallCause, int]:
    return {StallCause(cause): int(clk) for cause, clk in stalls.items()}


def write(folder: Path, versions: Mapping[str, VersionProfile]) -> None:
    """Write ``profiles.json``, whole or not at all."""
    content = {"schema": SCHEMA, **{name: v.to_dict() for name, v in versions.items()}}
    write_atomically(folder / FILE, (json.dumps(content, separators=(",", ":")) + "\n").encode())


def read(folder: Path) -> dict[str, VersionProfile]:
    """The versions that a run folder has profiles of; none when it has no such file."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise StoredProfileError(f"'{folder / FILE}' is not of this version ({SCHEMA})")
        return {name: _version(content[name]) for name in (ORIGINAL, WINNER) if name in content}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoredProfileError(f"'{folder / FILE}' cannot be read: {error}") from error


def _version(content: Mapping[str, Any]) -> VersionProfile:
    return VersionProfile(
        str(content["sha256"]), str(content["dispatch"]), str(content["source"]),
        str(content["device"]), int(content["cycles"]), int(content["clock_mhz"]),
        str(content["scope"]), tuple(int(n) for n in content["issued"]),
        tuple(_causes(stalls) for stalls in content["stalls"]),
        tuple(StoredWindow(
            int(w["start"]), int(w["stop"]), float(w["share"]), StallCause(w["cause"]),
            int(w["stalled"]), _causes(w["stalls"]), int(w["recoverable"]), int(w["executions"]),
            int(w["loop_depth"]), None if w["trip_count"] is None else float(w["trip_count"]))
            for w in content["windows"]))
