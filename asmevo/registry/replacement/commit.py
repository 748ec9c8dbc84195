"""Making a verified candidate a replacement of its original."""

from __future__ import annotations

import math

from sqlmodel import Session, col

from asmevo.registry.database.models import CandidateRow, JudgementRow, ReplacementRow
from asmevo.registry.errors import RegistryError
from asmevo.registry.judgement import Judgement
from asmevo.registry.records import CandidateStatus, ReplacementRecord
from asmevo.registry.replacement.evidence import missing_evidence, timing_source
from asmevo.registry.replacement.listing import replacement_records
from asmevo.registry.rows.candidates import candidate_records
from asmevo.registry.signing.issuer import Issuer


def commit(session: Session, issuer: Issuer, candidate_id: str, speedup: float,
           judged: Judgement | None = None) -> ReplacementRecord:
    """See `Registry.commit_replacement`."""
    if not (math.isfinite(speedup) and speedup > 0):
        raise RegistryError(f"a speedup of {speedup} is not a positive number")
    row = session.get(CandidateRow, candidate_id)
    if row is None:
        raise RegistryError(f"the registry has no candidate '{candidate_id}'")
    if known := replacement_records(session, {"candidate_id": candidate_id}):
        if known[0].speedup != speedup:
            raise RegistryError(f"candidate '{candidate_id}' is already committed, with a "
                                f"speedup of {known[0].speedup}")
        return known[0]
    [candidate] = candidate_records(session, col(CandidateRow.id) == candidate_id)
    missing = missing_evidence(candidate)
    if missing is None and candidate.status is not CandidateStatus.VERIFIED:
        missing = f"its status is {candidate.status}"
    if missing is not None or row.object_sha256 is None:
        raise RegistryError(f"candidate '{candidate_id}' is no replacement: {missing}")
    row.status = CandidateStatus.COMMITTED.value
    session.add(ReplacementRow(
        original_sha256=row.original_sha256, kernel=row.kernel, candidate_id=row.id,
        object_sha256=row.object_sha256, speedup=speedup,
        timing_source=timing_source(candidate), device=candidate.timings[0].device,
        evidence_complete=True))
    if judged is not None:
        session.add(JudgementRow(candidate_id=row.id, data=judged.to_json()))
    issuer.issue(session, candidate_id)
    return replacement_records(session, {"candidate_id": candidate_id})[0]
