"""Writes a search's events into the registry and the run folder as they happen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO, cast

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.device.device import Timing
from asmevo.gates.baseline import Baseline
from asmevo.gates.verdict import Verdict
from asmevo.propose import recording
from asmevo.propose.proposal import Direction, Proposal
from asmevo.registry.judgement import Judgement
from asmevo.registry.records import CandidateRecord, CandidateStatus
from asmevo.registry.registry import Registry
from asmevo.search.attempt import Attempt
from asmevo.search.eventlog import NAME, EventLog
from asmevo.search.events import AnyEvent, Attempted, Committed
from asmevo.search.lineage import Lineage, Node
from asmevo.task.counterexamples import Keeper


class Recorder:
    """Each step of a search becomes one registry transaction and lines of ``events.jsonl``, each
    attempt one line of ``proposals.jsonl`` for `ReplayProposer`.

    A commit becomes a replacement in the transaction of its events, so that a killed run loses
    nothing it had committed. What exposed a wrong candidate goes to ``counterexamples``. Text and
    object are stored of committed candidates; any other can be made again from its parent and its
    edits. ``past`` are events of earlier sittings, which the registry has already; ``judged`` is
    by what the run judges.
    """

    def __init__(self, registry: Registry, run_id: str, baseline: Baseline, folder: Path,
                 past: Sequence[AnyEvent] = (), lineage: Lineage | None = None, *,
                 judged: Judgement) -> None:
        self._registry = registry
        self._judged = judged
        self._run_id = run_id
        self._original = baseline.code_object.sha256
        self._kernel = baseline.kernel
        # Timings name their dispatch; the registry knows dispatches by content.
        by_hash = {d.sha256: d for d in baseline.dispatches}
        self._dispatches = {dispatch.name: sha256 for sha256, dispatch in by_hash.items()}
        self.counterexamples = Keeper(registry, baseline, by_hash)
        self._log = EventLog(folder / NAME, past)
        self._attempts = AttemptLog(folder / "attempts.jsonl")
        self._proposals = ProposalLog(folder / recording.NAME, self._original)
        edits = {r.id: r.edits for r in registry.lineage(run_id)} if past else {}
        for event in past:
            self._attempts.happened(event)
            self._proposals.happened(event, edits)
        self._candidates = {node.number: node.candidate for node in lineage or ()
                            if node.candidate}
        self._baseline_stored = bool(past) and bool(registry.baseline(run_id))

    def close(self) -> None:
        self._log.close()
        self._attempts.close()
        self._proposals.close()

    def write(self, events: Sequence[AnyEvent], attempt: Attempt | None = None,
              node: Node | None = None) -> None:
        """Make events durable; see `Journal`."""
        if attempt is not None and attempt.exposed_by is not None:
            self.counterexamples.keep(attempt.exposed_by)
        event = next((e for e in events if isinstance(e, Attempted)), None)
        record = None
        if attempt is not None and event is not None:
            if attempt.timings and not self._baseline_stored:
                self._registry.record_baseline(
                    self._run_id, self._original,
                    [self._stored(old) for old, _ in attempt.timings])
                self._baseline_stored = True
            record = self._record(event, attempt, node)
        self._registry.record_search(
            self._run_id, [event.to_json() for event in events], candidate=record,
            assembly=None if node is None else node.assembly.text(),
            built=None if node is None else CodeObject.parse(node.code),
            speedup=None if node is None else node.speedup, judged=self._judged)
        if node is not None:
            self._candidates[node.number] = node.candidate
        self._log.write(events)
        edits = {} if attempt is None or event is None else {
            event.candidate: attempt.proposal.edits}
        for entry in events:
            self._attempts.happened(entry)
            self._proposals.happened(entry, edits)

    def _record(self, event: Attempted, attempt: Attempt, node: Node | None) -> CandidateRecord:
        proposal = attempt.proposal
        return CandidateRecord(
            id=event.candidate,
            run_id=self._run_id,
            original_sha256=self._original,
            kernel=self._kernel,
            edits=proposal.edits,
            rule=proposal.rule,
            direction=proposal.direction.value,
            rationale=_reasoning(proposal),
            status=CandidateStatus.REJECTED if node is None else CandidateStatus.VERIFIED,
            parent_id=self._candidates.get(attempt.base),
            worker=attempt.worker,
            verdicts=attempt.verdicts,
            timings=tuple(self._stored(new) for _, new in attempt.timings),
        )

    def timed_again(self, node: Node, speedup: float | None, verdict: Verdict, *,
                    confirmed: bool) -> None:
        """What a fresh process found of a committed node; unless confirmed it is withdrawn."""
        candidate = self._candidates.get(node.number)
        if candidate is not None:
            self._registry.record_second_timing(candidate, speedup, verdict, confirmed=confirmed)

    def _stored(self, timing: Timing) -> Timing:
        return replace(timing, dispatch=self._dispatches[timing.dispatch])


class AttemptLog:
    """``attempts.jsonl``: a line for each candidate, with the gate that decided it."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("w", encoding="utf-8")
        self._nodes: dict[int, str] = {}

    def happened(self, event: AnyEvent) -> None:
        if isinstance(event, Committed):
            self._nodes[event.node] = event.candidate
        if not isinstance(event, Attempted) or event.duplicate or event.last is None:
            return
        last = event.last
        self._file.write(json.dumps(cast(dict[str, Any], {
            "candidate": event.candidate, "parent": self._nodes.get(event.base),
            "worker": event.worker, "rule": event.rule, "proposer": event.proposer,
            "direction": event.direction,
            "rationale": event.rationale, "assumption": event.assumption, "edits": event.edits,
            "gate": last.gate, "outcome": last.outcome, "code": last.code, "reason": last.reason,
            "speedup": event.speedup, "sha256": event.sha256, "node": event.node,
        })) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class ProposalLog:
    """``proposals.jsonl``: what `ReplayProposer` repeats the run from."""

    def __init__(self, path: Path, original: str) -> None:
        self._recording = recording.Recording(path)
        self._objects = {0: original}

    def happened(self, event: AnyEvent, edits: Mapping[str, tuple[Edit, ...]]) -> None:
        """``edits`` are by candidate, at least of the one that the event is about."""
        if isinstance(event, Committed):
            self._objects[event.node] = event.sha256
        if not isinstance(event, Attempted) or event.duplicate or event.last is None:
            return
        refused = event.last.code == "edit-refused"
        self._recording.add(recording.Recorded(
            self._objects[event.base],
            Proposal(
                edits[event.candidate], event.rule, Direction(event.direction), event.rationale,
                event.assumption, event.proposer, event.last.reason if refused else ""),
            event.sha256, composed=bool(event.parents)))

    def close(self) -> None:
        self._recording.close()


def _reasoning(proposal: Proposal) -> str:
    if not proposal.assumption:
        return proposal.rationale
    return f"{proposal.rationale} (assuming {proposal.assumption})"


