"""Who signed which replacement, as the rows say; `verify` and `pull` look at the signatures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sqlmodel import Session, col, select

from asmevo.registry.database.models import SignatureRow, StatementRow

_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class SignatureRecord:
    """A signature of a statement; ``current`` if it is of the one that holds now."""

    public_key: str
    statement_sha256: str
    current: bool
    created: datetime


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
