"""The replacements of an original as `pull` looks at them: records, statements, signatures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmodel import Session, col, select

from asmevo.registry.database.models import CandidateRow, ReplacementRow, StatementRow
from asmevo.registry.errors import BlobMissingError, StatementError, StatementFault
from asmevo.registry.records import ReplacementRecord
from asmevo.registry.replacement.listing import replacement_records
from asmevo.registry.signing.signatures import MOST_SIGNATURES, Signature, check_signatures
from asmevo.registry.signing.statement import Blobs, Statement, check_statements, readable

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry

_SNAPSHOTS = 3
"""How often what names a blob that is gone is looked up anew."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One replacement; its rows are what ``statement`` says, where there is one."""

    record: ReplacementRecord
    statement: Statement | None
    signatures: tuple[Signature, ...] = ()

    @property
    def forged(self) -> str | None:
        """What is wrong with its signatures, as the rest of a sentence."""
        if len(self.signatures) > MOST_SIGNATURES:
            return f"it has more than {MOST_SIGNATURES} signatures"
        wrong = next((s for s in self.signatures if not s.valid), None)
        return None if wrong is None else f"one is not of key {wrong.public_key[:64]!r}"

    @property
    def signers(self) -> tuple[str, ...]:
        """The public keys whose signatures are valid."""
        return tuple(s.public_key for s in self.signatures if s.valid)


def offers(registry: Registry, original_sha256: str) -> tuple[Offer, ...]:
    """The replacements of an original with all that `pull` asks of them, the best first.

    All of them are compared with their statements, not the best alone: which one that is depends
    on the rows of all. A statement without its replacement shows that its row was taken away.
    Raises `StatementError` where the rows of one are not what its statement says.
    """
    for left in reversed(range(_SNAPSHOTS)):
        try:
            with registry.database.read() as session, readable():
                return _offers(session, original_sha256, registry.blobs)
        except StatementError as error:
            # A statement may have been issued again, and gc have removed the former one, while
            # this was looking at the rows of before.
            if not left or not isinstance(error.__cause__, BlobMissingError):
                raise
    raise AssertionError


def _offers(session: Session, original_sha256: str, blobs: Blobs) -> tuple[Offer, ...]:
    of = col(CandidateRow.original_sha256) == original_sha256
    candidates = session.exec(
        select(ReplacementRow.candidate_id)
        .where(ReplacementRow.original_sha256 == original_sha256)).all()
    stated = session.exec(select(StatementRow.candidate_id).join(CandidateRow).where(of)).all()
    if taken := sorted(set(stated) - set(candidates)):
        raise StatementError(StatementFault.MISMATCH,
                             f"candidate '{taken[0]}' has a statement, but it is no replacement "
                             "of that original")
    statements = check_statements(session, candidates, blobs, missing=True)
    records = replacement_records(session, {"original_sha256": original_sha256})
    return tuple(
        Offer(record, statement, check_signatures(session, statement) if statement else ())
        for record in records
        for statement in [statements.get(record.candidate_id)])
