"""Whether replacements have their evidence, a statement that says so, and good signatures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from sqlmodel import Session, col

from asmevo.registry.audit.contents import finding_of
from asmevo.registry.audit.finding import Finding, FindingCode, shown
from asmevo.registry.database.models import ReplacementRow
from asmevo.registry.errors import BlobError, StatementError, StatementFault
from asmevo.registry.replacement.evidence import missing_in
from asmevo.registry.signing.signatures import MOST_SIGNATURES, check_signatures
from asmevo.registry.signing.statement import Blobs, Statement, check_statements
from asmevo.registry.signing.trust import TrustList

_BATCH = 200


def audit_replacements(session: Session, blobs: Blobs,
                       trust: TrustList | None = None) -> Iterator[Finding]:
    """Everything that is wrong with replacements; with a trust list also who signed none."""
    candidates = session.connection().execute(
        sa.select(col(ReplacementRow.candidate_id)).order_by(col(ReplacementRow.candidate_id))
    ).scalars().all()
    for start in range(0, len(candidates), _BATCH):
        yield from _audit(session, candidates[start:start + _BATCH], blobs, trust)


def _audit(session: Session, candidates: Sequence[str], blobs: Blobs,
           trust: TrustList | None) -> Iterator[Finding]:
    try:
        statements = check_statements(session, candidates, blobs, missing=True)
    except (StatementError, BlobError) as error:
        if len(candidates) > 1:
            for candidate_id in candidates:
                yield from _audit(session, [candidate_id], blobs, trust)
            return
        subject = f"replacement {shown(candidates[0])}"
        yield (finding_of(error, subject) if isinstance(error, BlobError) else
               Finding(_CODES[error.fault], subject, str(error)))
        return
    for candidate_id in candidates:
        subject = f"replacement {shown(candidate_id)}"
        if (statement := statements.get(candidate_id)) is None:
            yield Finding(FindingCode.STATEMENT_MISSING, subject,
                          "nothing states what it rests on; asmevo-registry sign --state does, "
                          "for who vouches for it")
            continue
        if (missing := missing_in(statement.document)) is not None:
            yield Finding(FindingCode.EVIDENCE_INCOMPLETE, subject, missing)
        yield from _signatures(session, subject, statement, trust)


def _signatures(session: Session, subject: str, statement: Statement,
                trust: TrustList | None) -> Iterator[Finding]:
    signatures = check_signatures(session, statement)
    if len(signatures) > MOST_SIGNATURES:
        yield Finding(FindingCode.SIGNATURE_INVALID, subject,
                      f"it has more than {MOST_SIGNATURES} signatures")
    for signature in signatures:
        if not signature.valid:
            yield Finding(FindingCode.SIGNATURE_INVALID, subject,
                          f"a signature is not that of key {shown(signature.public_key)}")
    if trust is None:
        return
    signers = {s.public_key for s in signatures if s.valid}
    if not signers:
        yield Finding(FindingCode.UNSIGNED, subject, "nobody has signed it")
    elif not signers & set(trust.keys):
        yield Finding(FindingCode.UNTRUSTED, subject,
                      f"none of its {len(signers)} signers is in trust list {trust.path}")


_CODES = {
    StatementFault.MISSING: FindingCode.STATEMENT_MISSING,
    StatementFault.DAMAGED: FindingCode.BLOB_CORRUPT,
    StatementFault.MISMATCH: FindingCode.STATEMENT_MISMATCH,
}
