"""How a candidate came about: each step from the original to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asmevo.registry.browse.documents import candidate_entry
from asmevo.registry.errors import RegistryError

if TYPE_CHECKING:
    from asmevo.registry.records import CandidateRecord
    from asmevo.registry.registry import Registry

_MOST_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class Step:
    """A candidate on the way; ``speedup`` is over the original and ``gain`` over its parent, where
    both were committed. ``parts`` are the candidates that a composition was made of."""

    record: CandidateRecord
    speedup: float | None
    gain: float | None
    proposer: str = ""
    parts: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The step as a part of a document."""
        return {"candidate": candidate_entry(self.record), "speedup": self.speedup,
                "gain": self.gain, "proposer": self.proposer, "parts": list(self.parts)}


def ancestry(registry: Registry, candidate_id: str) -> tuple[Step, ...]:
    """The steps to a candidate, the first first. Raises `RegistryError`."""
    line: list[CandidateRecord] = []
    seen: set[str] = set()
    at: str | None = candidate_id
    while at is not None:
        if at in seen or len(seen) == _MOST_STEPS:
            raise RegistryError(f"candidate '{candidate_id}' descends from itself")
        seen.add(at)
        line.append(registry.candidate(at))
        at = line[-1].parent_id
    line.reverse()
    speedups = _speedups(registry, line)
    steps = []
    before: float | None = 1.0
    for record in line:
        speedup = speedups.get(record.id)
        event = registry.catalog.attempt_event(record) or {}
        steps.append(Step(
            record, speedup, None if None in (speedup, before) else _ratio(speedup, before),
            str(event.get("proposer") or ""), _parts(event)))
        before = speedup
    return tuple(steps)


def _speedups(registry: Registry, line: Sequence[CandidateRecord]) -> Mapping[str, float]:
    return {r.candidate_id: r.speedup for run_id in {record.run_id for record in line}
            for r in registry.replacements(run_id=run_id)}


def _ratio(speedup: float | None, before: float | None) -> float | None:
    return speedup / before if speedup and before else None


def _parts(event: Mapping[str, Any]) -> tuple[str, ...]:
    parents = event.get("parents")
    if not isinstance(parents, list):
        return ()
    return tuple(str(p.get("candidate")) for p in parents if isinstance(p, Mapping))
