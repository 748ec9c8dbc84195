"""Writes a search's events into the registry and the run folder as they happen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

from asmevo.codeobject.container import CodeObject
from asmevo.gates.verdict import Verdict
from asmevo.registry.records import CandidateRecord, CandidateStatus
from asmevo.registry.registry import Registry
from asmevo.search.attempt import Attempt
from asmevo.search.lineage import Node


class Recorder:
    """Each attempt becomes one registry transaction and one line of ``attempts.jsonl``.

    A commit becomes a replacement at once, so that a killed run loses nothing it had committed.
    """

    def __init__(
        self, registry: Registry, run_id: str, original_sha256: str, kernel: str, folder: Path
    ) -> None:
        self._registry = registry
        self._run_id = run_id
        self._original = original_sha256
        self._kernel = kernel
        self._log: TextIO = (folder / "attempts.jsonl").open("w", encoding="utf-8")
        self._candidates: dict[int, str] = {}
        self._count = 0

    def close(self) -> None:
        self._log.close()

    def attempted(self, attempt: Attempt, verdicts: tuple[Verdict, ...], node: Node | None) -> None:
        self._count += 1
        proposal = attempt.proposal
        record = CandidateRecord(
            id=f"{self._run_id}-{self._count:05d}",
            run_id=self._run_id,
            original_sha256=self._original,
            kernel=self._kernel,
            edits=proposal.edits,
            rule=proposal.rule,
            direction=proposal.direction.value,
            rationale=proposal.rationale,
            status=CandidateStatus.REJECTED if node is None else CandidateStatus.VERIFIED,
            parent_id=self._candidates.get(attempt.base),
            worker=attempt.worker,
            verdicts=verdicts,
            timings=tuple(new for _, new in attempt.timings),
        )
        self._registry.record_candidate(
            record,
            assembly=attempt.assembly.text(),
            built=None if attempt.code is None else CodeObject.parse(attempt.code),
        )
        if node is not None:
            self._candidates[node.number] = record.id
            self._registry.commit_replacement(record.id, node.speedup)
        last = verdicts[-1]
        self._log.write(json.dumps({
            "candidate": record.id, "parent": record.parent_id, "worker": attempt.worker,
            "rule": proposal.rule, "direction": proposal.direction.value,
            "rationale": proposal.rationale, "edits": len(proposal.edits),
            "gate": last.gate.value, "outcome": last.outcome.value, "code": last.code,
            "reason": last.reason, "speedup": attempt.speedup, "sha256": attempt.sha256,
            "node": None if node is None else node.number,
        }) + "\n")
        self._log.flush()
