"""Going on with a search that was stopped or killed, from what the registry has of it."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from omegaconf import OmegaConf

from asmevo.errors import AsmEvoError
from asmevo.propose.proposal import Direction, Proposal
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import CandidateRecord
from asmevo.registry.registry import Registry
from asmevo.registry.run_lock import RunLock
from asmevo.search.attempt import Attempt
from asmevo.search.events import AnyEvent, Attempted, Committed, Ended, Fault, Started, from_json
from asmevo.search.lineage import Node, Resources
from asmevo.search.state import State
from asmevo.search.workbench import Workbench
from asmevo.task.proven_speedup import ProvenSpeedup
from asmevo.task.session import ConfigError, Session

log = logging.getLogger(__name__)

# What may differ between the sittings of a run: how far it goes, and where.
_FREE = ("resume", "budget", "executor", "ray", "patience", "order")
_FREE_GROUPS = ("registry", "output", "readme", "jobs", "candidate", "source", "original")


@dataclass(frozen=True)
class Past:
    """An earlier run, and what happened in it."""

    run_id: str
    events: tuple[AnyEvent, ...]
    lock: RunLock

    @property
    def started(self) -> Started:
        first = self.events[0]
        assert isinstance(first, Started)
        return first

    @property
    def seconds(self) -> float:
        """Of the wall-clock budget that were used."""
        return self.events[-1].seconds


def identity(session: Session) -> str:
    """A hash of everything that decides how a search goes, apart from how far."""
    plain = cast(dict[str, Any], OmegaConf.to_container(session.config, resolve=True))
    for name in _FREE_GROUPS:
        plain.pop(name, None)
    search = plain.get("search")
    if isinstance(search, dict):
        plain["search"] = {key: value for key, value in search.items() if key not in _FREE}
    text = json.dumps(plain, sort_keys=True, default=str)
    return hashlib.sha256(
        f"{session.code_object.sha256} {session.symbol} {text}".encode()).hexdigest()


def earlier(session: Session) -> Past | None:
    """The run that ``search.resume`` asks for, locked; ``None`` to start a new one.

    Raises `ConfigError` when a run is named that is none of this kernel and configuration, and
    `RegistryError` when another process is at it.
    """
    wanted = session.search.resume
    if wanted is False:
        return None
    own = identity(session)
    if isinstance(wanted, str):
        return _named(session, wanted, own)
    for record, first in session.registry.searches():
        if first.get("identity") != own:
            continue
        lock = RunLock(session.registry.path, record.id)
        if not lock.acquire():
            log.info("run %s is still being worked on", record.id)
            continue
        events = _events(session.registry, record.id)
        if not _over(events, session):
            return Past(record.id, events, lock)
        lock.release()
    log.info("there is no unfinished run to resume: a new one starts")
    return None


def _named(session: Session, run_id: str, own: str) -> Past:
    events = _events(session.registry, run_id)
    if not events or not isinstance(events[0], Started):
        raise ConfigError(f"search.resume={run_id}: that run has not searched")
    if events[0].identity != own:
        what = ("another kernel's" if events[0].original_sha256 != session.code_object.sha256
                else "of another configuration")
        raise ConfigError(f"search.resume={run_id}: that run is {what}")
    lock = RunLock(session.registry.path, run_id)
    lock.demand(run_id)
    # Its owner may have written more until the lock was ours.
    return Past(run_id, _events(session.registry, run_id), lock)


def _events(registry: Registry, run_id: str) -> tuple[AnyEvent, ...]:
    return tuple(from_json(data) for data in registry.search_events(run_id))


def _over(events: Sequence[AnyEvent], session: Session) -> bool:
    """Whether a run has nothing left to do: it said so, or its budget is used up."""
    last, budget = events[-1], session.search.budget
    if isinstance(last, Ended) and last.why == "exhausted":
        return True
    used = sum(isinstance(event, Attempted | Fault) for event in events)
    return used >= budget.attempts or last.seconds >= budget.seconds


def rebuild(state: State, past: Past, registry: Registry, workbench: Workbench) -> None:
    """Bring ``state`` to where the run stood.

    Nodes are built again from their parents and edits. Raises `RegistryError` where something is
    missing, or is not what it was: then another toolchain is in use, or a claimed speedup is not
    that of the stored timings.
    """
    records = {record.id: record for record in registry.lineage(past.run_id)}
    proven = ProvenSpeedup(registry.baseline(past.run_id))
    for event in past.events:
        attempt, node = None, None
        if isinstance(event, Attempted) and event.candidate:
            record = records.get(event.candidate)
            if record is None:
                raise RegistryError(f"the registry lacks candidate '{event.candidate}' of the run")
            if event.speedup is not None:
                proven.demand(f"attempt {event.attempt} of the run", event.speedup, record)
            attempt = _attempt(event, record)
        elif isinstance(event, Committed):
            node = _node(event, _committed(event, records, registry, proven), state, workbench)
        state.apply(event, attempt=attempt, node=node)


def _attempt(event: Attempted, record: CandidateRecord) -> Attempt:
    return Attempt(
        worker=event.worker, base=event.base,
        proposal=Proposal(
            record.edits, event.rule, Direction(event.direction), event.rationale,
            event.assumption, event.proposer),
        fingerprint=event.fingerprint, verdicts=record.verdicts, sha256=event.sha256,
        speedup=event.speedup, seconds=event.took, parents=event.parents,
        assignment=event.assignment)


def _committed(event: Committed, records: Mapping[str, CandidateRecord],
               registry: Registry, proven: ProvenSpeedup) -> CandidateRecord:
    """The candidate of a commit, whose record bears out the speedup that the event has."""
    record = records.get(event.candidate)
    if record is None:
        raise RegistryError(f"the registry lacks candidate '{event.candidate}' of the run")
    proven.demand(f"node {event.node} of the run", event.speedup, record)
    known = next((r.speedup for r in registry.replacements(
        original_sha256=record.original_sha256) if r.candidate_id == record.id), None)
    if known != event.speedup:
        raise RegistryError(
            f"node {event.node} of the run has a speedup of {event.speedup:g}, the replacement "
            f"{'is missing' if known is None else f'{known:g}'}: the registry was altered")
    return record


def _node(event: Committed, record: CandidateRecord, state: State, workbench: Workbench) -> Node:
    try:
        assembly, code = workbench.rebuilt(state.lineage[event.parent], record.edits)
    except AsmEvoError as error:
        raise RegistryError(f"node {event.node} of the run cannot be built again: {error}"
                            ) from error
    node = Node(
        number=event.node, parent=event.parent, assembly=assembly, code=code,
        sha256=hashlib.sha256(code).hexdigest(), speedup=event.speedup,
        resources=Resources(event.resources.vgprs, event.resources.sgprs,
                            event.resources.lds_bytes),
        edits=record.edits, rule=event.rule, direction=Direction(event.direction),
        rationale=event.rationale, assumption=event.assumption, proposer=event.proposer,
        candidate=event.candidate, parents=event.parents)
    if node.sha256 != event.sha256:
        raise RegistryError(f"node {event.node} of the run is {event.sha256}, but is built as "
                            f"{node.sha256} now: its toolchain is another one")
    return workbench.as_built(node)
