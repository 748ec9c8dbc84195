"""Writes a search's events into the registry and the run folder as they happen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import Timing
from asmevo.gates.baseline import Baseline
from asmevo.gates.verdict import Verdict
from asmevo.propose.proposal import Proposal
from asmevo.registry.records import CandidateRecord, CandidateStatus
from asmevo.registry.registry import Registry
from asmevo.search.attempt import Attempt
from asmevo.search.lineage import Node
from asmevo.task.counterexamples import Keeper


class Recorder:
    """Each attempt becomes one registry transaction and one line of ``attempts.jsonl``.

    A commit becomes a replacement at once, so that a killed run loses nothing it had committed.
    What exposed a wrong candidate goes to ``counterexamples``.
    """

    def __init__(
        self, registry: Registry, run_id: str, baseline: Baseline, folder: Path
    ) -> None:
        self._registry = registry
        self._run_id = run_id
        self._original = baseline.code_object.sha256
        self._kernel = baseline.kernel
        # Timings name their dispatch; the registry knows dispatches by content.
        by_hash = {d.sha256: d for d in baseline.dispatches}
        self._dispatches = {dispatch.name: sha256 for sha256, dispatch in by_hash.items()}
        self.counterexamples = Keeper(registry, baseline, by_hash)
        self._log: TextIO = (folder / "attempts.jsonl").open("w", encoding="utf-8")
        self._candidates: dict[int, str] = {}
        self._count = 0
        self._baseline_stored = False

    def close(self) -> None:
        self._log.close()

    def _stored(self, timing: Timing) -> Timing:
        return replace(timing, dispatch=self._dispatches[timing.dispatch])

    def attempted(self, attempt: Attempt, verdicts: tuple[Verdict, ...], node: Node | None) -> None:
        self._count += 1
        if attempt.timings and not self._baseline_stored:
            self._registry.record_baseline(
                self._run_id, self._original, [self._stored(old) for old, _ in attempt.timings]
            )
            self._baseline_stored = True
        proposal = attempt.proposal
        record = CandidateRecord(
            id=f"{self._run_id}-{self._count:05d}",
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
            verdicts=verdicts,
            timings=tuple(self._stored(new) for _, new in attempt.timings),
        )
        self._registry.record_candidate(
            record,
            assembly=attempt.assembly.text(),
            built=None if attempt.code is None else CodeObject.parse(attempt.code),
        )
        if attempt.exposed_by is not None:
            self.counterexamples.keep(attempt.exposed_by)
        if node is not None:
            self._candidates[node.number] = record.id
            self._registry.commit_replacement(record.id, node.speedup)
        last = verdicts[-1]
        self._log.write(json.dumps({
            "candidate": record.id, "parent": record.parent_id, "worker": attempt.worker,
            "rule": proposal.rule, "direction": proposal.direction.value,
            "rationale": proposal.rationale, "assumption": proposal.assumption,
            "edits": len(proposal.edits),
            "gate": last.gate.value, "outcome": last.outcome.value, "code": last.code,
            "reason": last.reason, "speedup": attempt.speedup, "sha256": attempt.sha256,
            "node": None if node is None else node.number,
        }) + "\n")
        self._log.flush()

    def timed_again(self, node: Node, speedup: float | None, verdict: Verdict, *,
                    confirmed: bool) -> None:
        """What a fresh process found of a committed node; unless confirmed it is withdrawn."""
        candidate = self._candidates.get(node.number)
        if candidate is not None:
            self._registry.record_second_timing(candidate, speedup, verdict, confirmed=confirmed)


def _reasoning(proposal: Proposal) -> str:
    if not proposal.assumption:
        return proposal.rationale
    return f"{proposal.rationale} (assuming {proposal.assumption})"
