"""Who states and signs what a registry commits."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from sqlmodel import Session, select

from asmevo.registry.database.models import SignatureRow, StatementRow
from asmevo.registry.errors import StatementError, StatementFault
from asmevo.registry.names import counted
from asmevo.registry.signing.keys import SigningKey, load_signing_key
from asmevo.registry.signing.signatures import add_signature
from asmevo.registry.signing.statement import Blobs, check_statement, check_statements, issue


class Issuer:
    """Issues statements, and signs them where there is a key."""

    def __init__(self, blobs: Blobs, signing_key: str | Path | None) -> None:
        self._blobs = blobs
        self._path = signing_key
        self._key: SigningKey | None = None

    def key(self) -> SigningKey | None:
        """The signing key, read once; None where none is configured. Raises `KeyFileError`."""
        if self._key is None and self._path is not None:
            self._key = load_signing_key(self._path)
        return self._key

    def issue(self, session: Session, candidate_id: str) -> str:
        """State what is committed, and sign that; returns the statement's SHA-256."""
        key = self.key()
        sha256 = issue(session, candidate_id, self._blobs)
        stale = select(SignatureRow).where(SignatureRow.candidate_id == candidate_id,
                                           SignatureRow.statement_sha256 != sha256)
        for row in session.exec(stale):
            session.delete(row)
        if key is not None:
            add_signature(session, candidate_id, sha256, key)
        return sha256

    def is_stated(self, session: Session, candidate_id: str) -> bool:
        """Whether there is a statement, after checking that the rows still say the same.

        To be asked before the rows are changed: a new statement would vouch for what somebody else
        did to them. Raises `StatementError`.
        """
        if session.get(StatementRow, candidate_id) is None:
            return False
        check_statement(session, candidate_id, self._blobs)
        return True

    def sign(self, session: Session, candidate_ids: Collection[str], key: SigningKey | None, *,
             state: bool) -> int:
        """Sign the statements of committed candidates, all or none; returns how many signatures
        are new.

        Each must be what the rows say. With ``state`` those get one that have none: replacements
        from before there were statements, for whose rows the caller vouches from now on, with or
        without a key.
        """
        checked = check_statements(session, candidate_ids, self._blobs, missing=True)
        hashes = {candidate_id: found.sha256 for candidate_id, found in checked.items()}
        lacking = sorted(set(candidate_ids) - set(checked))
        if lacking and not state:
            raise StatementError(
                StatementFault.MISSING,
                f"{counted(len(lacking), 'replacement')} without a statement, among them that of "
                f"candidate '{lacking[0]}'; look at them and use --state to vouch for what is "
                "recorded now")
        hashes |= {candidate_id: issue(session, candidate_id, self._blobs)
                   for candidate_id in lacking}
        if key is None:
            return 0
        return sum(add_signature(session, candidate_id, sha256, key)
                   for candidate_id, sha256 in sorted(hashes.items()))
