"""What happens in a search, as plain facts: log, registry and display all consume these.

Every event of a run has its ``number``, counted from 0 without gaps, and ``seconds``, how much of
the wall-clock budget was used when it happened (over all sittings of a resumed run). A run is
rebuilt from its events, so a field that a reader could trip over is never renamed: fields are only
added, with a default, and what an older run lacks reads as that default.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol, Union, get_args, get_origin, get_type_hints

from asmevo.errors import AsmEvoError


class EventError(AsmEvoError):
    """A record of an event is malformed."""


@dataclass(frozen=True, slots=True)
class VerdictFact:
    """What one gate said; ``outcome`` is ``pass``, ``fail`` or ``missing``."""

    gate: str
    outcome: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class ParentFact:
    """One of the verified candidates that a composition was made of; ``node`` if it is one."""

    candidate: str
    speedup: float
    node: int | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class ResourceFact:
    """Registers that a kernel's descriptor allocates, and its static LDS in bytes."""

    vgprs: int = 0
    sgprs: int = 0
    lds_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events."""

    kind: ClassVar[str] = ""

    number: int = 0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `from_json` gives an equal event for it."""
        return {"kind": self.kind, **dataclasses.asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event):
    """The first event of a run. ``None`` is a budget without that bound.

    ``counterexamples`` are the inputs of earlier runs that candidates are judged on, and
    ``identity`` is a hash of everything that decides how the run goes: a run is resumed by one with
    the same.
    """

    kind: ClassVar[str] = "started"

    run_id: str
    kernel: str
    original_sha256: str
    device: str = ""
    timing_source: str = ""
    seed: int = 0
    workers: int = 1
    executor: str = ""
    attempts: int = 0
    budget_seconds: float = 0.0
    tokens: int | None = None
    cost: float | None = None
    resources: ResourceFact = ResourceFact()
    counterexamples: tuple[str, ...] = ()
    identity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event):
    """The run goes on after it was stopped or killed, with so many attempts used."""

    kind: ClassVar[str] = "resumed"

    attempts_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(Event):
    """A worker was told to improve node ``base`` along ``directions`` (all when empty).

    ``policy`` chose the base. ``parts`` names the verified candidates that are to be composed on it
    instead, if any.
    """

    kind: ClassVar[str] = "assigned"

    assignment: int
    worker: int
    base: int
    directions: tuple[str, ...]
    attempts: int
    target: float
    seed: int
    policy: str = ""
    level: int = 0
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted(Event):
    """A candidate was judged. ``attempt`` counts from 1.

    ``verdicts`` include G4 where it was reached, and several of one gate are its repeats. ``gain``
    is the logarithm by which a commit beat the best before it.
    ``windows`` are the changed instructions of the base, ``(start, stop)`` each; ``edits`` how many
    edits it has. ``candidate`` is its id in the registry, empty for a ``duplicate`` of what
    another worker had judged before. ``speedup`` is over the original. ``node`` is set for a
    commit. ``took`` is the seconds of judging, ``proposing`` those in the proposer since the
    attempt before; ``tokens`` and ``cost`` (USD) what that cost. ``parents`` are those of a
    composition.
    """

    kind: ClassVar[str] = "attempted"

    attempt: int
    assignment: int
    worker: int
    base: int
    candidate: str
    proposer: str
    rule: str
    direction: str
    rationale: str
    assumption: str
    fingerprint: str
    verdicts: tuple[VerdictFact, ...]
    edits: int = 0
    windows: tuple[tuple[int, int], ...] = ()
    speedup: float | None = None
    sha256: str | None = None
    took: float = 0.0
    proposing: float = 0.0
    duplicate: bool = False
    node: int | None = None
    gain: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    parents: tuple[ParentFact, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it passed G0 to G3."""
        return bool(self.verdicts) and all(
            v.outcome == "pass" or v.gate == "G4" for v in self.verdicts)

    @property
    def last(self) -> VerdictFact | None:
        """The verdict that decided."""
        return self.verdicts[-1] if self.verdicts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Event):
    """An assignment ended; ``exhausted`` when nothing new was left to propose.

    ``duplicates`` were proposed again and not judged, ``blocked`` not judged because their kind had
    failed too often. ``busy`` is the worker's seconds and ``gates`` those of them inside the gates.
    ``proposing`` are seconds in the proposer, and ``tokens`` and ``cost`` what was spent, that
    belong to no attempt.
    """

    kind: ClassVar[str] = "finished"

    assignment: int
    worker: int
    exhausted: bool
    duplicates: int = 0
    blocked: int = 0
    busy: float = 0.0
    gates: float = 0.0
    proposing: float = 0.0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Event):
    """A candidate became ``node`` of the lineage; follows its `Attempted`.

    ``before`` is the best speedup until then, ``parents`` the two of a composition.
    """

    kind: ClassVar[str] = "committed"

    node: int
    parent: int
    candidate: str
    sha256: str
    speedup: float
    before: float
    worker: int
    proposer: str
    rule: str
    direction: str
    rationale: str
    assumption: str = ""
    windows: tuple[tuple[int, int], ...] = ()
    resources: ResourceFact = ResourceFact()
    parents: tuple[ParentFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed(Event):
    """An attempt to compose verified candidates on node ``base`` ended.

    ``parts`` are the candidates, largest gain first, and ``kept`` those in the final state, whose
    verified speedup is ``speedup``; ``node`` the last one committed on the way.
    """

    kind: ClassVar[str] = "composed"

    assignment: int
    worker: int
    base: int
    parts: tuple[str, ...]
    kept: tuple[str, ...]
    speedup: float
    node: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirected(Event):
    """Supervision changed course. ``reason`` is ``no-progress``, ``repeats`` or ``faults``.

    ``action`` is ``change-target`` or ``backtrack``; ``exhausted`` are hypotheses given up, as
    sentences; ``summary`` says in sentences what was tried. ``dry`` are nodes and directions that
    are not assigned any more, ``hopeless`` nodes and rules that are not judged any more, with gate
    and code at which they mostly failed and how often.
    """

    kind: ClassVar[str] = "redirected"

    reason: str
    action: str
    count: int
    summary: tuple[str, ...] = ()
    exhausted: tuple[str, ...] = ()
    dry: tuple[tuple[int, str], ...] = ()
    hopeless: tuple[tuple[int, str, str, str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalated(Event):
    """Redirects did not help: from now on a larger exploration from ``starts`` (nodes)."""

    kind: ClassVar[str] = "escalated"

    level: int
    starts: tuple[int, ...]
    attempts: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Event):
    """A worker was lost; it costs one attempt. ``abandoned`` when its assignment is given up."""

    kind: ClassVar[str] = "fault"

    assignment: int
    worker: int
    reason: str
    abandoned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """The search is over for now.

    ``why`` is ``exhausted``, ``attempts``, ``seconds``, ``tokens``, ``cost``, ``faults`` or
    ``interrupted``; after the last of them, and after a bound was raised, it can be resumed.
    """

    kind: ClassVar[str] = "ended"

    why: str
    attempts: int
    duplicates: int
    faults: int
    commits: int
    best: int
    speedup: float


AnyEvent = (
    Started | Resumed | Assigned | Attempted | Finished | Committed | Composed | Redirected
    | Escalated | Fault | Ended
)

KINDS: Mapping[str, type[Event]] = {kind.kind: kind for kind in get_args(AnyEvent)}


class Observer(Protocol):
    """Is told every event of a search, in order, after it has been made durable.

    On resuming, the events of earlier sittings come first, so that an observer need not be told
    that it is one.
    """

    def happened(self, event: AnyEvent) -> None: ...


def from_json(data: Mapping[str, Any]) -> AnyEvent:
    """The event that `Event.to_json` described. Raises `EventError`."""
    kind = KINDS.get(str(data.get("kind")))
    if kind is None:
        raise EventError(f"there is no event of kind {data.get('kind')!r}")
    try:
        made = _read(kind, {key: value for key, value in data.items() if key != "kind"})
    except (TypeError, ValueError, AttributeError) as error:
        raise EventError(f"the record of a '{kind.kind}' event is malformed: {error}") from error
    return made  # type: ignore[no-any-return]


@cache
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind)}


def _read(kind: Any, value: Any) -> Any:
    """``value`` from JSON as what a type annotation says."""
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type]
        # A newer version's additional field is none of ours.
        return kind(**{  # type: ignore[operator]
            name: _read(hints[name], item) for name, item in value.items() if name in hints})
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        inner = [member for member in get_args(kind) if member is not type(None)]
        return None if value is None else _read(inner[0], value)
    if origin is tuple:
        return tuple(_items(get_args(kind), value))
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not a {kind.__name__}")
    return value


def _items(members: tuple[Any, ...], value: Any) -> Iterable[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r} is not a list")
    if len(members) == 2 and members[1] is Ellipsis:
        return [_read(members[0], item) for item in value]
    return [_read(member, item) for member, item in zip(members, value, strict=True)]
