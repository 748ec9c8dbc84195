"""Signatures of statements: adding and checking them, and who signed what as the rows say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sqlmodel import Session, col, select

from asmevo.registry.database.models import SignatureRow, StatementRow
from asmevo.registry.signing.keys import Domain, SigningKey, verifies
from asmevo.registry.signing.statement import Statement

_AT_ONCE = 10_000

MOST_SIGNATURES = 256
"""Of one replacement; checking more would only keep whoever pulls busy."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature as stored; ``valid`` if it is that key's of the current statement."""

    candidate_id: str
    public_key: str
    valid: bool


@dataclass(frozen=True, slots=True)
class SignatureRecord:
    """A signature of a statement; ``current`` if it is of the one that holds now."""

    public_key: str
    statement_sha256: str
    current: bool
    created: datetime


def add_signature(session: Session, candidate_id: str, sha256: str, key: SigningKey) -> bool:
    """Sign a statement unless that key has; returns whether it had not."""
    known = session.exec(select(SignatureRow).where(
        SignatureRow.candidate_id == candidate_id, SignatureRow.public_key == key.public_key,
        SignatureRow.statement_sha256 == sha256)).first()
    signature = key.sign(Domain.STATEMENT, sha256)
    if known is not None and known.signature == signature:
        return False
    row = known or SignatureRow(candidate_id=candidate_id, public_key=key.public_key,
                                statement_sha256=sha256, signature=signature)
    row.signature = signature
    session.add(row)
    session.flush()
    return True


def check_signatures(session: Session, statement: Statement) -> tuple[Signature, ...]:
    """All signatures of a replacement; one of an earlier statement is not valid."""
    rows = session.exec(select(SignatureRow.public_key, SignatureRow.statement_sha256,
                               SignatureRow.signature)
                        .where(SignatureRow.candidate_id == statement.candidate_id)
                        .order_by(SignatureRow.public_key)
                        .limit(MOST_SIGNATURES + 1))
    return tuple(
        Signature(statement.candidate_id, str(key),
                  sha256 == statement.sha256
                  and verifies(str(key), str(signature), Domain.STATEMENT, statement.sha256))
        for key, sha256, signature in rows)


def signature_records(session: Session, candidate_ids: Collection[str],
                      ) -> Mapping[str, Sequence[SignatureRecord]]:
    """The signatures of replacements, oldest first, by candidate."""
    found: defaultdict[str, list[SignatureRecord]] = defaultdict(list)
    for some in _batches(candidate_ids):
        rows = session.exec(
            select(SignatureRow, StatementRow.statement_sha256)
            .outerjoin(StatementRow,
                       col(StatementRow.candidate_id) == SignatureRow.candidate_id)
            .where(col(SignatureRow.candidate_id).in_(some))
            .order_by(col(SignatureRow.created), col(SignatureRow.id)))
        for row, statement in rows:
            found[row.candidate_id].append(SignatureRecord(
                row.public_key, row.statement_sha256, row.statement_sha256 == statement,
                row.created))
    return found


def _batches(ids: Collection[str]) -> Iterator[list[str]]:
    left = iter(ids)
    while some := list(islice(left, _AT_ONCE)):
        yield some
