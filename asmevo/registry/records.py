"""What goes into the registry and comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from asmevo.registry.judgement import UNKNOWN, Judgement

if TYPE_CHECKING:
    from asmevo.codeobject.assembly import Edit
    from asmevo.device.device import Timing
    from asmevo.gates.verdict import JsonValue, Verdict

Source = Literal["measured", "modelled"]
"""The values of `asmevo.device.device.TimingSource`, without importing devices."""


class RunStatus(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class CandidateStatus(StrEnum):
    """How a candidate ended.

    ``ERROR`` means that the gates could not finish (a lost worker, a device that went away) and
    ``VERIFIED`` that all passed; only `Registry.commit_replacement` makes that ``COMMITTED``.
    """

    REJECTED = "rejected"
    ERROR = "error"
    VERIFIED = "verified"
    COMMITTED = "committed"


class ReplacementStatus(StrEnum):
    """How a replacement stands; the first that applies, in this order, is the one.

    ``WITHDRAWN``: a fresh process did not find it faster. ``WEAKER``: it was judged by less than
    the defaults. ``CONFIRMED``: a fresh process found it faster too. ``COMMITTED``: none looked.
    """

    WITHDRAWN = "withdrawn"
    WEAKER = "weaker"
    CONFIRMED = "confirmed"
    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """A stored code object; ``kernels`` are its kernel symbols, ``size`` is in bytes."""

    sha256: str
    isa: str
    size: int
    kernels: tuple[str, ...]
    source: str
    created: datetime


@dataclass(frozen=True, slots=True)
class RecoveredRecord:
    """The recovered assembly of a code object, and the report of its round trip."""

    id: int
    code_object_sha256: str
    assembly_sha256: str
    report: Mapping[str, JsonValue]
    toolchain: Mapping[str, JsonValue]
    created: datetime


@dataclass(frozen=True, slots=True)
class DispatchRecord:
    """A stored dispatch; blob ``content_sha256`` describes it."""

    sha256: str
    kernel: str
    name: str
    held_out: bool
    content_sha256: str
    created: datetime


class CaptureReason(StrEnum):
    """Why a capture is kept: asked for, or because it exposed a wrong candidate."""

    CAPTURED = "captured"
    COUNTEREXAMPLE = "counterexample"


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """A captured dispatch of a kernel; ``size`` is its memory before the dispatch, in bytes."""

    sha256: str
    original_sha256: str
    kernel: str
    name: str
    reason: CaptureReason
    held_out: bool
    size: int
    dispatch_sha256: str | None
    created: datetime


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One execution of a task and all that its results depend on.

    ``config_sha256`` names a blob: the composed configuration as text.
    """

    id: str
    task: str
    status: RunStatus
    started: datetime
    finished: datetime | None
    config_sha256: str
    seed: int
    package_version: str
    toolchain: Mapping[str, JsonValue]
    device: str
    device_source: Source


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """One attempt: edits to a parent, what the gates said, how long it ran.

    ``parent_id`` is None for a child of the original. Several verdicts of one gate are its repeats,
    in order. `Registry.record_candidate` fills in ``assembly_sha256``, ``object_sha256`` (None:
    nothing was built) and ``created``.
    """

    id: str
    run_id: str
    original_sha256: str
    kernel: str
    edits: tuple[Edit, ...]
    rule: str
    direction: str
    rationale: str
    status: CandidateStatus
    parent_id: str | None = None
    worker: int = 0
    verdicts: tuple[Verdict, ...] = ()
    timings: tuple[Timing, ...] = field(default=(), repr=False)
    assembly_sha256: str | None = None
    object_sha256: str | None = None
    created: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReplacementRecord:
    """A committed candidate: a drop-in for one kernel of an original.

    ``speedup`` is median latency of the original over that of the replacement, on ``device``, and
    ``speedup_again`` that in a fresh process, if it was timed there. One that this did not confirm
    is ``withdrawn``. ``judgement`` says by what it was judged, where that is recorded.
    """

    id: int
    original_sha256: str
    kernel: str
    isa: str
    candidate_id: str
    run_id: str
    object_sha256: str
    speedup: float
    timing_source: Source
    device: str
    evidence_complete: bool
    created: datetime
    speedup_again: float | None = None
    withdrawn: bool = False
    judgement: Judgement | None = None

    @property
    def weaknesses(self) -> tuple[str, ...]:
        """Where it was judged by less than the defaults; not to know counts as less."""
        return (UNKNOWN,) if self.judgement is None else self.judgement.weaknesses()

    @property
    def status(self) -> ReplacementStatus:
        """How it stands, in one word."""
        if self.withdrawn:
            return ReplacementStatus.WITHDRAWN
        if self.weaknesses:
            return ReplacementStatus.WEAKER
        return (ReplacementStatus.COMMITTED if self.speedup_again is None
                else ReplacementStatus.CONFIRMED)
