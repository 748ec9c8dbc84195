"""`result.json`: what a run came to, for machines.

The schema is versioned and documented in ``result.schema.json`` beside this file. A change that a
reader could trip over raises the number in ``SCHEMA``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from asmevo.durable import write_atomically

SCHEMA = "asmevo.result/1"


class Status(StrEnum):
    """How a task ended."""

    COMMITTED = "committed"      # optimize: a replacement was committed
    NONE = "none"                # optimize: no candidate was good enough
    VERIFIED = "verified"        # verify: every gate passed again
    REJECTED = "rejected"        # verify: a gate did not pass
    IDENTICAL = "identical"      # recover, roundtrip: every object came back byte for byte
    DIFFERENT = "different"      # recover, roundtrip: at least one did not
    REBUILT = "rebuilt"          # rebuild: there is a new object
    INSPECTED = "inspected"      # inspect
    AGREES = "agrees"            # run: every dispatch is as near its reference as the YAML demands
    DISAGREES = "disagrees"      # run: one is not, or varies
    FAULTED = "faulted"          # run, profile: one did not come to its end
    CAPTURED = "captured"        # capture: every dispatch is on disk, and its replay proven
    COMPILED = "compiled"        # compile: the object is in the cache
    PROFILED = "profiled"        # profile: the reports are in the run folder
    RAN = "ran"                  # run: nothing that the YAML demands anything of was launched
    MET = "met"                  # validate_timing: nothing that is demanded of the model is missed
    MISSED = "missed"            # validate_timing: something is
    REPORTED = "reported"        # report: the page is in its folder
    COMPARED = "compared"        # compare: the table is in the run folder
    INCOMPLETE = "incomplete"    # experiment: not every search ended
    SOUND = "sound"              # threats: every cheat was caught and no rewrite refused
    FOOLED = "fooled"            # threats: a cheat succeeded or a rewrite was refused
    INTERRUPTED = "interrupted"  # Ctrl-C
    ERROR = "error"              # bad input or configuration


EXIT_STATUS: Mapping[Status, int] = {
    Status.COMMITTED: 0, Status.VERIFIED: 0, Status.IDENTICAL: 0, Status.REBUILT: 0,
    Status.INSPECTED: 0, Status.AGREES: 0, Status.RAN: 0,
    Status.CAPTURED: 0, Status.COMPILED: 0, Status.MET: 0, Status.PROFILED: 0,
    Status.SOUND: 0, Status.FOOLED: 1, Status.REPORTED: 0, Status.COMPARED: 0,
    Status.NONE: 1, Status.REJECTED: 1, Status.DIFFERENT: 1, Status.DISAGREES: 1,
    Status.FAULTED: 1, Status.MISSED: 1, Status.INCOMPLETE: 1,
    Status.ERROR: 2, Status.INTERRUPTED: 130,
}


@dataclass
class Result:
    """One run. Fields that a task does not know stay at their defaults.

    ``speedup`` is the best verified one over the original and ``speedup_again`` that of the winner
    when it was timed once more in a fresh process, ``timing_source`` ``measured`` or ``modelled``;
    ``verdicts[gate][outcome]`` counts candidates. ``wave_instructions_per_second`` is the
    emulator's throughput in the original's self-check. ``counterexamples`` names dispatches: those
    of earlier runs that candidates were judged on as ``used``, those that exposed a wrong one now
    as ``kept``, or ``refused`` where there was no room. ``spent`` is what was used of the search's
    budget, over all sittings of a ``resumed`` one, and ``overhead`` where its time went.
    ``details`` is what only one task knows; the schema says what for which.
    """

    task: str
    status: Status
    error: str | None = None
    kernel: str | None = None
    symbol: str | None = None
    original_sha256: str | None = None
    replacement_sha256: str | None = None
    speedup: float | None = None
    speedup_again: float | None = None
    timing_source: str | None = None
    device: str | None = None
    attempts: int = 0
    duplicates: int = 0
    commits: int = 0
    verdicts: dict[str, dict[str, int]] = field(default_factory=dict)
    rules: dict[str, dict[str, float]] = field(default_factory=dict)
    stopped: str | None = None
    run_id: str | None = None
    registry: str | None = None
    folder: str | None = None
    wall_seconds: float = 0.0
    wave_instructions_per_second: float | None = None
    counterexamples: dict[str, list[str]] = field(default_factory=dict)
    report: str | None = None
    timings: list[dict[str, Any]] = field(default_factory=list)
    proposers: dict[str, dict[str, float]] = field(default_factory=dict)
    faults: int = 0
    last_fault: str | None = None
    compositions: int = 0
    resumed: bool = False
    spent: dict[str, float] = field(default_factory=dict)
    overhead: dict[str, float] | None = None
    details: dict[str, Any] | None = None

    @property
    def exit_status(self) -> int:
        return EXIT_STATUS[self.status]

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2, allow_nan=False) + "\n"

    def write(self, folder: Path) -> Path:
        """Write ``result.json`` into ``folder``, whole or not at all."""
        path = folder / "result.json"
        write_atomically(path, self.to_json().encode())
        return path
